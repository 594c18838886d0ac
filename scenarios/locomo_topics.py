"""From a question to words that can stand in a sentence: "when Caroline went to the group"."""

import re
from collections.abc import Sequence

_AUXILIARY = "did|does|do|is|are|was|were|has|have|had|can|could|will|would|should"

_IRREGULAR = {
    "be": "was", "become": "became", "begin": "began", "break": "broke", "bring": "brought",
    "build": "built", "buy": "bought", "catch": "caught", "choose": "chose", "come": "came",
    "deal": "dealt", "do": "did", "draw": "drew", "drive": "drove", "eat": "ate", "feel": "felt",
    "find": "found", "fly": "flew", "get": "got", "give": "gave", "go": "went", "grow": "grew",
    "hang": "hung", "have": "had", "hear": "heard", "hold": "held", "keep": "kept", "know": "knew",
    "lead": "led", "learn": "learned", "leave": "left", "lose": "lost", "make": "made",
    "meet": "met", "pay": "paid", "put": "put", "read": "read", "ride": "rode", "run": "ran",
    "say": "said", "see": "saw", "sell": "sold", "send": "sent", "set": "set", "show": "showed",
    "sing": "sang", "sit": "sat", "speak": "spoke", "spend": "spent", "stand": "stood",
    "swim": "swam", "take": "took", "teach": "taught", "tell": "told", "think": "thought",
    "throw": "threw", "undergo": "underwent", "understand": "understood", "wake": "woke",
    "wear": "wore", "win": "won", "write": "wrote", "let": "let", "cut": "cut", "hit": "hit",
    "hurt": "hurt", "host": "hosted", "visit": "visited", "quit": "quit", "fall": "fell",
    "sleep": "slept", "lend": "lent", "bake": "baked",
}  # fmt: skip

_DOUBLED = frozenset({"plan", "stop", "shop", "chat", "drop", "grab", "jog", "pet", "rip", "trip"})

_STOP = frozenset(
    "a about after all an and are as at be been by can could did do does for from had has have her "
    "him his how in into is it its kind long many much of on or s she should some such than that "
    "the their them they this to type was were what when where which who whom whose why will with "
    "would".split()
)


def topic(question: str, speakers: Sequence[str]) -> str:
    """The question as a clause that fits after "about"; quoted where it cannot be turned safely.

    Only questions whose subject is one of the speakers (or both) are turned: there the subject's
    end is known, and the verb after it can be put into its tense.
    """
    text = question.strip().rstrip("?. ")
    names = "|".join(re.escape(name) for name in speakers)
    who = rf"(?:{names})(?:'s [a-z]+)?(?: and (?:{names}))?"
    found = re.fullmatch(rf"(\w[\w' -]*?) ({_AUXILIARY}) ({who}) (.+)", text)
    if found is None or not _is_wh(found[1]):
        return f'the question "{text}?"'
    lead, auxiliary, subject, rest = found.groups()
    lead = lead[0].lower() + lead[1:]
    clause = None if rest.startswith("and ") else _clause(auxiliary, subject, rest)
    return f'the question "{text}?"' if clause is None else f"{lead} {clause}"


def keywords(question: str, speakers: Sequence[str], *, most: int = 4) -> str:
    """The telling words of a question in their order, names of the speakers first if they occur."""
    words = re.findall(r"[\w-]+", question)
    telling = [w for w in words if w.lower() not in _STOP and len(w) > 1 and not w.isdigit()]
    named = [w for w in telling if w in speakers]
    others = [w for w in telling if w not in speakers]
    return ", ".join(dict.fromkeys([*named[:1], *others[-most:]]))


def past(verb: str) -> str:
    """Simple past of a verb in its base form."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb in _DOUBLED:
        return f"{verb}{verb[-1]}ed"
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}ed"


def third_person(verb: str) -> str:
    """Third person singular of a verb in its base form."""
    if verb in {"be", "have", "do", "go"}:
        return {"be": "is", "have": "has", "do": "does", "go": "goes"}[verb]
    if verb.endswith(("s", "sh", "ch", "x", "z")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"


def _clause(auxiliary: str, subject: str, rest: str) -> str | None:
    verb, _, after = rest.partition(" ")
    if auxiliary in {"is", "are", "was", "were"}:
        if re.search(r"'s [a-z]+$", subject):
            return None
        return f"{subject} {auxiliary} {rest}"
    if auxiliary in {"do", "did", "does"}:
        if not re.fullmatch(r"[a-z]+", verb) or verb.endswith("ly"):
            return f"{subject} {auxiliary} {rest}"
        turned = _inflected(auxiliary, verb)
        return f"{subject} {turned} {after}".rstrip()
    return f"{subject} {auxiliary} {rest}"


def _inflected(auxiliary: str, verb: str) -> str:
    if auxiliary == "did":
        return past(verb)
    return third_person(verb) if auxiliary == "does" else verb


def _is_wh(lead: str) -> bool:
    return lead.split(maxsplit=1)[0].lower() in {
        "what",
        "when",
        "where",
        "which",
        "who",
        "how",
        "why",
    }
