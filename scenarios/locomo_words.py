"""Words of one type each, for swapping an entity by another of its type."""

import re
from collections.abc import Mapping

LEXICON: Mapping[str, tuple[str, ...]] = {
    "cities": tuple(
        "Barcelona,Boston,Chicago,Denver,Dublin,Lisbon,London,Madrid,Miami,Milan,Minneapolis,Oslo,"
        "Paris,Portland,Prague,Rome,San Francisco,Seattle,Stockholm,Tokyo,Toronto,Vancouver,Vienna,"
        "New York City,Warsaw,Helsinki,Zurich,Lima,Nairobi,Shinjuku,Stamford".split(",")
    ),
    "countries": tuple(
        "Argentina,Australia,Austria,Belgium,Brazil,Canada,Chile,Denmark,England,Finland,France,"
        "Germany,Greece,Iceland,India,Ireland,Italy,Japan,Kenya,Mexico,Morocco,New Zealand,Norway,"
        "Peru,Portugal,Spain,Sweden,Thailand,Turkey,Vietnam".split(",")
    ),
    "regions": tuple(
        "Bali,Phuket,Florida,Indiana,Michigan,Oregon,Utah,Nova Scotia,Tuscany,Bavaria,Provence,"
        "Andalusia,Patagonia,Hokkaido,Tasmania,Flanders".split(",")
    ),
    "colours": tuple(
        "purple,red,blue,green,yellow,orange,pink,white,black,brown,grey,turquoise,crimson".split(
            ","
        )
    ),
    "dishes": tuple(
        "lasagna,sushi,pizza,paella,risotto,ramen,curry,chili,goulash,ratatouille,moussaka,tacos,"
        "dumplings,roasted chicken,grilled salmon,beef stew,mushroom soup".split(",")
    ),
    "sweets": tuple(
        "chocolate cake,banana bread,apple pie,cheesecake,tiramisu,ice cream,cookies,cupcakes,"
        "lemon tart,coconut pudding,vanilla custard,brownies".split(",")
    ),
    "activities": tuple(
        "painting,photography,yoga,running,hiking,swimming,surfing,coding,cooking,gardening,"
        "pottery,chess,fishing,skiing,climbing,sailing,knitting,archery,dancing,kayaking,"
        "kickboxing,snowboarding,birdwatching,woodworking,writing,cycling,camping,boxing,"
        "meditation,baking,fencing,rowing".split(",")
    ),
    "instruments": tuple(
        "violin,piano,guitar,clarinet,drums,cello,flute,saxophone,trumpet,harp,banjo,oboe,"
        "accordion".split(",")
    ),
    "animals": tuple(
        "turtles,eagles,dogs,cats,snakes,horses,rabbits,owls,parrots,hamsters,lizards,sparrows,"
        "dolphins,deer,foxes,hedgehogs,ferrets".split(",")
    ),
    "films": tuple(
        "Inception,Lord of the Rings,Titanic,Casablanca,Jaws,Amadeus,Alien,Gladiator,"
        "Little Women,Star Wars,Vertigo,Chinatown,Fargo,Rocky".split(",")
    ),
    "video games": tuple(
        "Cyberpunk 2077,FIFA 23,Tetris,Minecraft,Catan,Overcooked,Portal,Stardew Valley,Skyrim,"
        "Pac-Man,Civilization,Street Fighter,Valorant,Monopoly,Zelda".split(",")
    ),
    "books": tuple(
        "Sapiens,Dune,Emma,Middlemarch,The Hobbit,Beloved,Ulysses,Little Women,The Alchemist,"
        "Treasure Island,Jane Eyre,Walden,Frankenstein,The Trial".split(",")
    ),
    "pet names": tuple(
        "Bailey,Oliver,Luna,Oscar,Max,Coco,Shadow,Ned,Toby,Buddy,Susie,Seraphim,Scout,Daisy,Rex,"
        "Biscuit,Pepper,Ziggy,Nugget,Clover".split(",")
    ),
    "illnesses": tuple(
        "gastritis,asthma,migraine,bronchitis,anemia,arthritis,sinusitis,tonsillitis,vertigo,"
        "eczema,pneumonia".split(",")
    ),
    "weekdays": tuple("Monday,Tuesday,Wednesday,Thursday,Friday,Saturday,Sunday".split(",")),
    "months": tuple(
        "January,February,March,April,June,July,August,September,October,November,December".split(
            ","
        )
    ),
    "seasons": ("spring", "summer", "autumn", "winter"),
    "views": tuple(
        "sunset,sunrise,waterfall,lighthouse,meadow,glacier,canyon,rainbow,harbour,vineyard".split(
            ","
        )
    ),
    "feelings": tuple(
        "happy,excited,nervous,proud,calm,relaxed,grateful,amazed,confident,lonely,bored,hopeful,"
        "frustrated,disappointed,relieved,touched,stressed,anxious,inspired".split(",")
    ),
    "qualities": tuple(
        "amazing,awesome,inspiring,spectacular,peaceful,magical,exhausting,overwhelming,soothing,"
        "heartwarming,boring,chaotic,calming".split(",")
    ),
    "sports": tuple(
        "basketball,baseball,football,soccer,tennis,volleyball,hockey,rugby,badminton,golf,cricket,"
        "bowling".split(",")
    ),
    "genres": tuple(
        "fantasy,romance,mystery,horror,comedy,science fiction,drama,thriller,western".split(",")
    ),
    "game genres": tuple("RPGs,shooters,puzzle games,racing games,platformers".split(",")),
}
"""General knowledge, lists of this project's own."""


def normal(text: str) -> str:
    """Lower case, words only, one space between; articles dropped."""
    return " ".join(w for w in re.findall(r"\w+", text.lower()) if w not in {"a", "an", "the"})


def lexicon_types(answer: str) -> tuple[str, ...]:
    """Types under which an answer is listed."""
    wanted = normal(answer)
    return tuple(
        name for name, words in LEXICON.items() if wanted in {normal(word) for word in words}
    )
