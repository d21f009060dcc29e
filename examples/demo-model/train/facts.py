"""The closed facts of the demo's small world. All lists were written for this project."""


def _table(text, sep="|"):
    return [tuple(p.strip() for p in line.split(sep)) for line in text.strip().splitlines()]


def _words(text):
    return text.split()


# country | capital | continent | main language
COUNTRIES = _table("""
France|Paris|Europe|French
Germany|Berlin|Europe|German
Italy|Rome|Europe|Italian
Spain|Madrid|Europe|Spanish
Portugal|Lisbon|Europe|Portuguese
Greece|Athens|Europe|Greek
Austria|Vienna|Europe|German
Poland|Warsaw|Europe|Polish
Hungary|Budapest|Europe|Hungarian
Romania|Bucharest|Europe|Romanian
Bulgaria|Sofia|Europe|Bulgarian
Sweden|Stockholm|Europe|Swedish
Norway|Oslo|Europe|Norwegian
Denmark|Copenhagen|Europe|Danish
Finland|Helsinki|Europe|Finnish
Iceland|Reykjavik|Europe|Icelandic
Ireland|Dublin|Europe|English
England|London|Europe|English
Scotland|Edinburgh|Europe|English
Belgium|Brussels|Europe|Dutch
the Netherlands|Amsterdam|Europe|Dutch
Croatia|Zagreb|Europe|Croatian
Serbia|Belgrade|Europe|Serbian
Ukraine|Kyiv|Europe|Ukrainian
Russia|Moscow|Europe|Russian
Albania|Tirana|Europe|Albanian
Estonia|Tallinn|Europe|Estonian
Latvia|Riga|Europe|Latvian
Lithuania|Vilnius|Europe|Lithuanian
Slovakia|Bratislava|Europe|Slovak
Slovenia|Ljubljana|Europe|Slovene
Malta|Valletta|Europe|Maltese
Turkey|Ankara|Asia|Turkish
China|Beijing|Asia|Chinese
Japan|Tokyo|Asia|Japanese
India|New Delhi|Asia|Hindi
Thailand|Bangkok|Asia|Thai
Vietnam|Hanoi|Asia|Vietnamese
Indonesia|Jakarta|Asia|Indonesian
Malaysia|Kuala Lumpur|Asia|Malay
South Korea|Seoul|Asia|Korean
North Korea|Pyongyang|Asia|Korean
Mongolia|Ulaanbaatar|Asia|Mongolian
Nepal|Kathmandu|Asia|Nepali
Pakistan|Islamabad|Asia|Urdu
Bangladesh|Dhaka|Asia|Bengali
Iran|Tehran|Asia|Persian
Iraq|Baghdad|Asia|Arabic
Syria|Damascus|Asia|Arabic
Jordan|Amman|Asia|Arabic
Lebanon|Beirut|Asia|Arabic
Saudi Arabia|Riyadh|Asia|Arabic
Qatar|Doha|Asia|Arabic
Oman|Muscat|Asia|Arabic
Cambodia|Phnom Penh|Asia|Khmer
Laos|Vientiane|Asia|Lao
the Philippines|Manila|Asia|Filipino
Georgia|Tbilisi|Asia|Georgian
Armenia|Yerevan|Asia|Armenian
Afghanistan|Kabul|Asia|Pashto
Egypt|Cairo|Africa|Arabic
Morocco|Rabat|Africa|Arabic
Algeria|Algiers|Africa|Arabic
Tunisia|Tunis|Africa|Arabic
Libya|Tripoli|Africa|Arabic
Sudan|Khartoum|Africa|Arabic
Ethiopia|Addis Ababa|Africa|Amharic
Kenya|Nairobi|Africa|Swahili
Uganda|Kampala|Africa|English
Ghana|Accra|Africa|English
Nigeria|Abuja|Africa|English
Senegal|Dakar|Africa|French
Mali|Bamako|Africa|French
Angola|Luanda|Africa|Portuguese
Zambia|Lusaka|Africa|English
Zimbabwe|Harare|Africa|English
Namibia|Windhoek|Africa|English
Mozambique|Maputo|Africa|Portuguese
Madagascar|Antananarivo|Africa|Malagasy
Rwanda|Kigali|Africa|Kinyarwanda
Somalia|Mogadishu|Africa|Somali
Canada|Ottawa|North America|English
Mexico|Mexico City|North America|Spanish
Cuba|Havana|North America|Spanish
Jamaica|Kingston|North America|English
Haiti|Port-au-Prince|North America|French
Guatemala|Guatemala City|North America|Spanish
Honduras|Tegucigalpa|North America|Spanish
Nicaragua|Managua|North America|Spanish
Costa Rica|San Jose|North America|Spanish
Panama|Panama City|North America|Spanish
the United States|Washington|North America|English
Brazil|Brasilia|South America|Portuguese
Argentina|Buenos Aires|South America|Spanish
Chile|Santiago|South America|Spanish
Peru|Lima|South America|Spanish
Colombia|Bogota|South America|Spanish
Venezuela|Caracas|South America|Spanish
Ecuador|Quito|South America|Spanish
Uruguay|Montevideo|South America|Spanish
Paraguay|Asuncion|South America|Spanish
Australia|Canberra|Oceania|English
New Zealand|Wellington|Oceania|English
Fiji|Suva|Oceania|English
""")

OPPOSITES = _table("""
hot|cold
big|small
tall|short
fast|slow
happy|sad
good|bad
new|old
light|dark
wet|dry
hard|soft
loud|quiet
full|empty
open|closed
up|down
left|right
in|out
on|off
high|low
early|late
rich|poor
strong|weak
clean|dirty
near|far
thick|thin
wide|narrow
deep|shallow
sweet|sour
smooth|rough
day|night
black|white
begin|end
start|stop
push|pull
give|take
buy|sell
win|lose
love|hate
laugh|cry
remember|forget
arrive|leave
above|below
before|after
inside|outside
always|never
everything|nothing
first|last
more|less
many|few
true|false
easy|difficult
safe|dangerous
brave|cowardly
kind|cruel
polite|rude
cheap|expensive
simple|complex
same|different
alive|dead
asleep|awake
sharp|blunt
tight|loose
top|bottom
front|back
north|south
east|west
summer|winter
friend|enemy
question|answer
war|peace
sunrise|sunset
entrance|exit
success|failure
increase|decrease
accept|refuse
build|destroy
float|sink
rise|fall
teach|learn
wake|sleep
whisper|shout
ancient|modern
bright|dim
calm|stormy
careful|careless
common|rare
fresh|stale
guilty|innocent
huge|tiny
lazy|hardworking
major|minor
noisy|silent
public|private
tame|wild
useful|useless
visible|invisible
possible|impossible
lucky|unlucky
fair|unfair
""")

# word | plural
PLURALS = _table("""
cat|cats
dog|dogs
house|houses
tree|trees
car|cars
book|books
bird|birds
apple|apples
table|tables
chair|chairs
river|rivers
friend|friends
cloud|clouds
flower|flowers
box|boxes
fox|foxes
bus|buses
glass|glasses
dish|dishes
watch|watches
church|churches
bench|benches
brush|brushes
peach|peaches
class|classes
dress|dresses
kiss|kisses
tax|taxes
baby|babies
city|cities
lady|ladies
story|stories
party|parties
berry|berries
country|countries
family|families
puppy|puppies
fly|flies
butterfly|butterflies
cherry|cherries
boy|boys
day|days
key|keys
toy|toys
monkey|monkeys
donkey|donkeys
leaf|leaves
knife|knives
wife|wives
life|lives
wolf|wolves
shelf|shelves
half|halves
loaf|loaves
thief|thieves
calf|calves
man|men
woman|women
child|children
foot|feet
tooth|teeth
goose|geese
mouse|mice
ox|oxen
person|people
sheep|sheep
deer|deer
fish|fish
potato|potatoes
tomato|tomatoes
hero|heroes
echo|echoes
piano|pianos
photo|photos
radio|radios
cactus|cacti
star|stars
king|kings
queen|queens
horse|horses
cow|cows
pig|pigs
egg|eggs
door|doors
window|windows
garden|gardens
ship|ships
boat|boats
shoe|shoes
hat|hats
lion|lions
tiger|tigers
orange|oranges
bridge|bridges
page|pages
rose|roses
village|villages
mountain|mountains
island|islands
pencil|pencils
""")

# present | past
PASTS = _table("""
go|went
eat|ate
see|saw
run|ran
come|came
take|took
give|gave
make|made
find|found
think|thought
bring|brought
buy|bought
catch|caught
teach|taught
write|wrote
read|read
speak|spoke
break|broke
drink|drank
sing|sang
swim|swam
sleep|slept
keep|kept
feel|felt
leave|left
lose|lost
sell|sold
tell|told
know|knew
grow|grew
fly|flew
draw|drew
drive|drove
ride|rode
rise|rose
wear|wore
win|won
stand|stood
sit|sat
send|sent
build|built
hear|heard
hold|held
fall|fell
forget|forgot
choose|chose
begin|began
walk|walked
play|played
jump|jumped
look|looked
help|helped
ask|asked
open|opened
cook|cooked
dance|danced
laugh|laughed
love|loved
live|lived
stop|stopped
carry|carried
cry|cried
study|studied
try|tried
""")

COLOURS = _table("""
the sky|blue
grass|green
a banana|yellow
snow|white
coal|black
blood|red
a carrot|orange
a lemon|yellow
a ripe tomato|red
a strawberry|red
a cucumber|green
milk|white
chocolate|brown
an elephant|grey
a flamingo|pink
the sun|yellow
a leaf in summer|green
a fire engine|red
a crow|black
a polar bear|white
a frog|green
salt|white
the sea|blue
a pig|pink
a pumpkin|orange
a plum|purple
an eggplant|purple
wood|brown
ash|grey
a swan|white
gold|yellow
silver|grey
a cherry|red
broccoli|green
honey|golden
night|black
""")

SOUNDS = _table("""
a dog|woof
a cat|meow
a cow|moo
a sheep|baa
a pig|oink
a duck|quack
a horse|neigh
a rooster|cock-a-doodle-doo
a lion|roar
a mouse|squeak
a snake|hiss
an owl|hoot
a bee|buzz
a frog|croak
a wolf|howl
a bird|tweet
a donkey|hee-haw
a crow|caw
a turkey|gobble
a goat|bleat
""")

YOUNG = _table("""
dog|puppy
cat|kitten
cow|calf
horse|foal
sheep|lamb
pig|piglet
goat|kid
lion|cub
bear|cub
duck|duckling
goose|gosling
hen|chick
frog|tadpole
deer|fawn
kangaroo|joey
owl|owlet
swan|cygnet
butterfly|caterpillar
eagle|eaglet
rabbit|bunny
""")

# category (with article) -> members
CATEGORIES = {
    "an animal": _words("dog cat horse cow lion tiger elephant rabbit mouse bear wolf fox monkey goat sheep pig deer camel zebra giraffe"),
    "a bird": _words("eagle owl parrot penguin swan crow robin sparrow pigeon duck"),
    "a fish": _words("trout salmon shark tuna cod herring carp"),
    "an insect": _words("bee ant butterfly beetle mosquito wasp cricket"),
    "a fruit": _words("apple banana cherry grape lemon mango orange peach pear plum"),
    "a vegetable": _words("carrot potato onion cabbage spinach pea leek radish turnip"),
    "a flower": _words("rose tulip daisy lily violet sunflower orchid"),
    "a tree": _words("oak pine birch maple willow elm spruce"),
    "a colour": _words("red blue green yellow purple pink brown grey black white"),
    "a musical instrument": _words("piano guitar violin drum flute trumpet cello harp"),
    "a vehicle": _words("car bus train bicycle truck boat plane tram"),
    "a piece of clothing": _words("shirt hat coat scarf sock glove jacket skirt"),
    "a piece of furniture": _words("table chair bed sofa desk shelf wardrobe"),
    "a metal": _words("iron gold silver copper tin lead zinc"),
    "a drink": _words("water tea coffee milk juice lemonade"),
    "a part of the body": _words("hand foot arm leg nose ear elbow knee shoulder"),
    "a tool": _words("hammer saw drill wrench screwdriver shovel"),
    "a sport": _words("football tennis hockey golf rugby basketball"),
    "a planet": _words("Mars Venus Jupiter Saturn Mercury Neptune Uranus"),
}

DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = _words("January February March April May June July August September October November December")
MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
ORDINALS = _words("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SEASONS = _table("""
December|winter
January|winter
February|winter
March|spring
April|spring
May|spring
June|summer
July|summer
August|summer
September|autumn
October|autumn
November|autumn
""")

# thing | how many of what
NUMBERS_OF = _table("""
legs does a dog have|A dog has 4 legs.|4
legs does a spider have|A spider has 8 legs.|8
legs does an insect have|An insect has 6 legs.|6
legs does a bird have|A bird has 2 legs.|2
legs does a horse have|A horse has 4 legs.|4
legs does a snake have|A snake has 0 legs.|0
arms does an octopus have|An octopus has 8 arms.|8
wheels does a bicycle have|A bicycle has 2 wheels.|2
wheels does a tricycle have|A tricycle has 3 wheels.|3
wheels does a car have|A car has 4 wheels.|4
sides does a triangle have|A triangle has 3 sides.|3
sides does a square have|A square has 4 sides.|4
sides does a pentagon have|A pentagon has 5 sides.|5
sides does a hexagon have|A hexagon has 6 sides.|6
sides does an octagon have|An octagon has 8 sides.|8
days are in a week|There are 7 days in a week.|7
months are in a year|There are 12 months in a year.|12
hours are in a day|There are 24 hours in a day.|24
minutes are in an hour|There are 60 minutes in an hour.|60
seconds are in a minute|There are 60 seconds in a minute.|60
days are in a year|There are 365 days in a year.|365
weeks are in a year|There are 52 weeks in a year.|52
years are in a century|There are 100 years in a century.|100
years are in a decade|There are 10 years in a decade.|10
letters are in the alphabet|There are 26 letters in the alphabet.|26
fingers are on one hand|There are 5 fingers on one hand.|5
planets are in the solar system|There are 8 planets in the solar system.|8
seasons are in a year|There are 4 seasons in a year.|4
centimetres are in a metre|There are 100 centimetres in a metre.|100
metres are in a kilometre|There are 1000 metres in a kilometre.|1000
grams are in a kilogram|There are 1000 grams in a kilogram.|1000
colours are in a rainbow|There are 7 colours in a rainbow.|7
strings does a violin have|A violin has 4 strings.|4
strings does a guitar have|A guitar has 6 strings.|6
things are in a dozen|There are 12 things in a dozen.|12
players are in a football team|There are 11 players in a football team.|11
""")

# word | definition, completed as "A WORD is DEFINITION."
DEFINITIONS = _table("""
a river|a long stream of water that flows to the sea
a lake|a large body of water with land all around it
an island|a piece of land with water all around it
a mountain|a very high hill of rock
a valley|low land between hills or mountains
a desert|a very dry place where little grows
a forest|a large area full of trees
a volcano|a mountain that can throw out hot melted rock
an ocean|a very large sea
a beach|the sandy edge of a sea or lake
a cave|a hollow space in rock or under the ground
a glacier|a slow river of ice
a bridge|a structure that carries a road over water
a castle|a large old building with strong walls
a library|a place where books are kept and lent
a school|a place where children learn
a hospital|a place where sick people are treated
a museum|a building that shows old or beautiful things
a bakery|a shop where bread is made and sold
a market|a place where people buy and sell things
a farm|land where crops are grown and animals are kept
a harbour|a safe place for ships near the land
a lighthouse|a tower with a lamp that guides ships
a tunnel|a passage under the ground
a teacher|a person who helps others to learn
a doctor|a person who treats the sick
a baker|a person who makes bread
a pilot|a person who flies a plane
a farmer|a person who works on a farm
a sailor|a person who works on a ship
a painter|a person who makes pictures
a poet|a person who writes poems
a tailor|a person who makes clothes
a carpenter|a person who makes things of wood
a judge|a person who decides in a court
an orphan|a child whose parents are dead
a neighbour|a person who lives near you
a guest|a person who visits you
a thief|a person who steals
a hero|a very brave person
a friend|a person you like and trust
a clock|a thing that shows the time
a compass|a tool that shows where north is
a hammer|a tool for driving nails
a needle|a thin sharp tool for sewing
a ladder|a set of steps for climbing
a mirror|a glass in which you see yourself
a candle|a stick of wax that gives light
a lamp|a thing that gives light
a map|a drawing that shows where places are
a key|a thing that opens a lock
a lock|a thing that keeps a door shut
an umbrella|a thing that keeps the rain off you
a telescope|a tool that makes far things look near
a microscope|a tool that makes tiny things look big
a thermometer|a tool that measures how hot it is
a calendar|a list of the days and months of a year
a dictionary|a book that explains words
a novel|a long story in a book
a poem|a short text with rhythm or rhyme
a letter|a written message sent to someone
a secret|something that only a few people know
a promise|a word given that you will do something
a gift|something you give to make someone happy
a holiday|a time when you do not work
a birthday|the day of the year on which you were born
a dream|a story in your mind while you sleep
a joke|a short story that makes people laugh
a debt|money that you owe
a journey|a long trip from one place to another
a shadow|a dark shape made where light is blocked
a storm|very bad weather with strong wind
a cloud|a mass of tiny drops of water in the sky
a rainbow|a bow of colours in the sky after rain
a star|a huge ball of hot gas far away in space
a planet|a large round body that moves around a star
a comet|a ball of ice with a bright tail in space
a seed|the small part of a plant from which a new one grows
a root|the part of a plant under the ground
a leaf|a flat green part of a plant
a fruit|the part of a plant that holds the seeds
a vegetable|a plant that we eat as food
a mammal|an animal that feeds its young with milk
an insect|a small animal with 6 legs
a bird|an animal with wings and feathers
a fish|an animal that lives in water and has fins
a bee|an insect that makes honey
a spider|a small animal with 8 legs that makes webs
a whale|a very large mammal that lives in the sea
a dolphin|a clever mammal that lives in the sea
an eagle|a large bird that hunts
an owl|a bird that hunts at night
a camel|a desert animal with a hump
a giraffe|a tall animal with a very long neck
an elephant|a huge animal with a trunk
a penguin|a bird that swims but does not fly
a bicycle|a vehicle with 2 wheels that you pedal
a train|a row of wagons that runs on rails
a ship|a large boat
a wheel|a round thing that turns
an engine|a machine that makes things move
a computer|a machine that works with information
a program|a list of instructions for a computer
a robot|a machine that can do work by itself
a language|a way of speaking that people share
a word|a group of sounds or letters with a meaning
a sentence|a group of words that says something
a vowel|one of the letters A, E, I, O and U
a number|a word or sign that says how many
a triangle|a shape with 3 sides
a square|a shape with 4 equal sides
a circle|a perfectly round shape
a century|a time of 100 years
a decade|a time of 10 years
a second|a very short time, one part of 60 in a minute
a king|a man who rules a country
a queen|a woman who rules a country
a village|a very small town
a city|a large town
a capital|the city where a country is governed
a country|a land with its own government
a desk|a table for writing and working
a pillow|a soft thing for your head in bed
a blanket|a warm cover for a bed
a kitchen|a room where food is cooked
a garden|a piece of ground where plants are grown
a fence|a wall of wood or wire around land
a roof|the top cover of a house
a window|an opening in a wall with glass in it
a coin|a round piece of metal money
a purse|a small bag for money
a song|words that are sung to music
a choir|a group of people who sing together
an orchestra|a large group of people who play music together
a drum|an instrument that you hit to make a sound
a violin|an instrument with 4 strings and a bow
""")

SPELL = _words("""
cat dog sun moon star tree fish bird book door house mouse horse water bread apple table chair green
white black brown happy small light night river stone cloud sheep tiger lion bear wolf frog duck cow pig
hat coat shoe hand foot head nose ear eye arm leg milk tea rice soup cake salt egg king queen ship boat
train car bus road city farm lake sea hill wind rain snow ice fire wood gold iron glass paper music song
dance game ball drum bell clock lamp key box cup bowl knife spoon fork plate bed room wall roof window
garden flower grass leaf seed root fruit lemon orange banana cherry grape peach pear plum carrot potato
onion summer winter spring autumn morning evening friend mother father sister brother baby child teacher
doctor baker school market church castle bridge island forest desert valley mountain ocean beach
yellow purple pink orange silver number letter word story poem dream smile laugh sleep walk jump swim
bicycle rocket robot planet pencil pocket basket blanket button candle kitten puppy rabbit monkey parrot
""")

CONDITIONS = _words("sunny cloudy rainy windy snowy foggy stormy clear")

# Names met in training. The sets kept apart have others (see talk.py).
NAMES = _words("""
Anna Ben Clara David Emma Felix Greta Henry Ida Jack Kate Leo Maria Noah Olga Paul Rosa Sam Tina Victor
Alice Bruno Carla Daniel Elena Frank Gina Hugo Irene James Karin Liam Mona Nina Oscar Petra Robert Sara
Tom Vera Adam Bella Chris Diana Eric Fiona George Hanna Ivan Julia Kevin Lena Mark Nora Otto Paula Ralph
Sofia Theo Ursula Walter Amir Beata Carlos Dora Emil Fatima Gabriel Helen Isaac Jasmin Karl Laura Martin
Nadia Olivia Peter Quentin Rita Simon Tara Uma Vincent Wanda Xavier Yara Zoe Aaron Betty Conrad Daisy
Edgar Flora Gustav Hilda Igor Jana Klaus Lucy Marco Nelly Omar Polly Raul Sonia Tobias Viola Wilma Yusuf
Agnes Boris Celia Dennis Edith Fred Gloria Harold Inga Joseph Kim Linda Max Natalie Oliver Pia Ruth Stefan
Trudy Vlad Will Yvonne Zack Abel Bianca Cora Dario Elsa Ferdinand Gerda Hector Iris Jonas Kira Luis Mila
""")

CITIES = [c[1] for c in COUNTRIES]
FOODS = _words("pizza pasta bread soup cheese rice chocolate salad pancakes honey apples noodles sushi tomatoes cake beans mushrooms curry strawberries cookies potatoes olives")
PET_KINDS = _words("dog cat rabbit parrot hamster horse turtle")
ANIMALS = _words("cat dog fox wolf bear rabbit mouse owl lion tiger horse duck frog turtle elephant monkey parrot penguin dolphin hedgehog squirrel goat")
SOLID_COLOURS = _words("red blue green yellow purple pink brown orange black white grey silver golden")
JOBS = _words("teacher doctor baker pilot farmer sailor painter poet tailor carpenter judge nurse singer driver gardener cook")
HOBBIES = _words("chess swimming painting reading dancing cooking fishing hiking singing football gardening cycling")
COMMON = sorted(set(SPELL) | {p[0] for p in PLURALS} | {p[0] for p in OPPOSITES if " " not in p[0]})
