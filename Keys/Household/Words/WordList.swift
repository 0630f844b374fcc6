/// The 2048 words that secrets and fingerprints are shown as (docs/words.txt, in the same order).
///
/// Chosen so that a slip of the pen is told from the word alone: the first four letters name a word, and no two words are
/// one letter apart, be it another, a missing, an added one or two that changed places.
public enum WordList {
  /// In alphabetical order; a word's number is its index, 0 to 2047.
  public static let words: [String] = text.split(separator: " ").map(String.init)

  private static let numbers: [String: Int] = Dictionary(
    uniqueKeysWithValues: words.enumerated().map { ($0.element, $0.offset) })
  private static let byFirstLetters: [String: Int] = Dictionary(
    uniqueKeysWithValues: words.enumerated().map { (String($0.element.prefix(significantLetters)), $0.offset) })

  /// How many letters name a word.
  public static let significantLetters = 4

  /// The number of a word, written in full, upper or lower case; nil if it is none of the list.
  public static func number(of word: some StringProtocol) -> Int? { numbers[word.lowercased()] }

  /// Words that somebody may have meant: the one that begins with the same four letters, and those that are one slip away.
  /// In the order of the list.
  public static func suggestions(for word: some StringProtocol) -> [String] {
    let typed = Array(word.lowercased().utf8)
    let begun = byFirstLetters[String(word.lowercased().prefix(significantLetters))]
    return words.indices.filter { $0 == begun || isOneSlip(typed, Array(words[$0].utf8)) }.map { words[$0] }
  }

  /// Whether two words differ by one letter: another, a missing or added one, or two neighbours that changed places.
  static func isOneSlip(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    guard abs(a.count - b.count) < 2, a != b else { return false }
    let start = zip(a, b).prefix { $0 == $1 }.count
    let end = zip(a.reversed(), b.reversed()).prefix { $0 == $1 }.count
    let (one, two) = (a.count - start - end, b.count - start - end)
    if max(one, two) <= 1 { return true }
    // Neighbours that changed places.
    return a.count == b.count && one == 2 && a[start] == b[start + 1] && a[start + 1] == b[start]
  }

  private static let text = """
    above absent accent acorn acre acrobat actor adapt addle admire adobe adult advice aerial aerobic affair afford \
    afraid after again agave agenda agile agree ahead airport aisle alarm album alcove alder alert algae alias alibi \
    alien alike alley almanac almond alone aloof alpha alpine amateur amaze amber ambient ambush amend amigo ample \
    amuse anchor ancient anemone angle animal annex annual answer antenna anthem antique antler anvil apply april \
    apron arcade arena argue arise armor aroma arrange arrive arrow artist ascend aside asleep aspen asphalt asset \
    assist assume astral athlete atlas atom attach attend attic auburn audio august author autumn avocet avoid awake \
    award awful awning axis axle azalea azure baboon baby bacon badge bagel baggage bagpipe baker balance balcony \
    ballad balsam bamboo banana bandage banjo banner banquet barber bargain barley barn barrel basalt basil basket \
    bassoon batch bathtub battery bauble bayou bazaar beach beam beard beaver become bedrock bedtime beehive beetle \
    behave beige belief bellows benefit beret berry best betray bicycle bingo birch bird biscuit bishop bison blade \
    blanket blend blimp blink blister block blonde blossom blouse blue bluff blunt blush boast bobbin body bold \
    bonfire bonnet bonsai bonus boom borrow boss botany bottle boulder bouquet bowl boxer bracket braid bramble \
    brass brave bread breeze brew brick bride brief bright bring broken bronze brook brother brown brunch bubble \
    bucket buddy budget buffet bugle builder bulb bumper bundle bunker bunny buoy burden bureau burger bushel butler \
    button buyer buzzer bygone cabaret cabbage cabin cable cactus cadet cafe calcium calico calm calypso camel camp \
    canal candid canine cannon canoe canteen canvas capable capital capsule captain caramel carbon card career cargo \
    caribou carol carpet carrot cartoon carve cascade cashew casino castle casual catalog catfish caution cavern \
    cavity cayenne cedar ceiling celery cell cement centaur cereal certain chain chalk chamber chance chapel charm \
    chase cheap check cheddar cheese cherry chess chicken chief child chimney chisel choice choose chord chowder \
    chrome chuckle chunk church cider cigar cinema circle citizen citrus city civil claim clap clarity class clean \
    clerk clever click client cliff climb clinic cloak close cloth cloud clown club clump cluster coach coat cobalt \
    cobbler cockpit cocoa coffee coil collar color column combine comet comfort comma compass concert condor cone \
    congo connect consul contest cook copper copy coral correct cosmic cotton cougar count couple courage cousin \
    cover cowboy coyote crab cracker cradle craft crane crater crawl crayon cream credit creek crest cricket crisp \
    critic crocus crop cross crouch crowd crucial crumb crystal cube cuckoo cuddle cuff culture cumin cupcake curb \
    curious curry cushion custom cycle cymbal cypress dahlia daily damage damsel dance daring dark data dawn dazzle \
    dear debate debris debut decade decent decimal deck decline decor defend define degree delay delight delta \
    demand denim dense dental depart depot depth deputy derby dervish desert design detail detect detour develop \
    device devote dewdrop diagram dial diamond diary dice diesel diet differ digest digit dilemma dinghy diploma \
    direct disco dish display distant divide doctor dodge doll dolmen dolphin domain dome domino donate donkey donor \
    dormant dosage double dough dozen dragon drain drama drape drawer dress drift drill drink drive drizzle drone \
    drum dryer duchess dune duplex dusk duty duvet dwarf dwell dynamo eager eagle early earth easel eastern ebony \
    echo eclair eclipse ecology edit educate effect effort elbow eldest elect elegant element elite embark emblem \
    embrace emerald emotion emperor employ empty enable enamel enchant encore endive endless enemy energy engage \
    engine enhance enjoy enlist enrich enroll ensure enter entire entry epic episode equal equip erase ermine errand \
    error erupt escape escort essay essence estate estuary eternal ethics event evolve exact example excess excite \
    exclude excuse exhale exhibit exile exist exotic expand expert explain expose express extend extra eyebrow \
    eyelash fabric face faint fairway faith falcon fall family famous fancy fanfare fantasy faraway farm fashion \
    father faucet favor feast feature federal feed fellow fence fennel fern ferret festoon fetch fiber fiction \
    fiddle field fiesta figment figure filbert file filter final finch find finger finish firefly fitness fizz flag \
    flake flannel flash fleet flicker flight flip float flood flora flour flow fluffy fluid flute focus foghorn \
    folder folk fondue foot force forest formal fortune forum fossil foster foyer fragile frame freckle free freight \
    fresh friend frigate fringe frisbee frog front frozen fruit fudge fuel fugue furnace furrow fury fusion future \
    gadget galaxy gale gallop gander garage garden gargle garlic garment garnet garter gauge gazebo gecko gelatin \
    general genius gentle genuine geology germ gesture geyser ghost giant gift giggle ginseng giraffe girl give \
    glacier glad glance glaze gleam glee glide glimpse glitter globe glory glossy gnat gnome goal goblet golf \
    gondola gong good goose gopher gorge gorilla gosling gospel gossip gourd govern gown grace grammar grand graph \
    gravy great green griddle grin grocer grotto group grove guard guava guess guild guinea guitar gull gumbo guppy \
    gust gymnast gypsum habit haiku hail half halibut hamlet hammer hamster handful hangar happy harbor harmony \
    harness harp harvest haste haven hawk hazel heal heart heather heavy hedge heir helium helmet help hemlock \
    herald herb hermit heron hexagon hiccup hickory hidden high hike hill hinge hint hippo history hobby hockey hole \
    holiday holly honey hoof horizon hornet horse hotel hour huge human humble humid hummus humor hurdle husband \
    hybrid hydrant hyena hymn hyphen ibex iceberg iceland icicle icon ideal idol igloo ignite iguana image imitate \
    immune impact import imprint impulse include income index indigo indoor infant inform inhale inherit initial \
    inject inkwell inlet inner input inquiry inside inspire install intact invent invite iris island isolate issue \
    item ivory jackal jade jaguar janitor january jargon jasmine jaunt javelin jazz jeans jeep jelly jester jetty \
    jewel jigsaw jingle jogger join joke journal jubilee juggle juice july jump junior karate kayak kebab keen \
    kernel kettle khaki kick kidney kimono kindle king kiosk kiss kitchen kite kitten kiwi kneel knife knight knit \
    knob knock knuckle koala kudos label labor lack lacquer ladder ladle lady lagoon lamb land lantern laptop larch \
    large laser lasso last latitude lattice laugh laundry laurel lava lavender lawyer leader leaflet league leap \
    learn lease lecture legal legend legume leisure lemon length lens lentil leopard lesson lettuce level liberty \
    library license lichen lilac lilypad lime limit linen lion liquid listen liter litmus little lizard llama load \
    lobelia lobster local locket locust logic loop lotion lottery lotus lounge love lucid lucky luggage lullaby \
    lumber luminous lunar lunch lung lupine luxury lynx lyric macaw machine madam maestro magenta magic magnet \
    magpie mahogany maiden main maize major make mallet mammal manage mandarin mango mansion mantle manual marathon \
    marble margin marine marjoram market marmot maroon married marsh martial marvel marzipan mascot mask mason \
    master matador material matinee matrix mattress mature maximum meadow meander measure meat medal media medley \
    melon member memory mention menu mercury merit mermaid mesh message meteor method metro midnight mild military \
    mimic mimosa minaret mineral minimum minor minute miracle mirror mischief mist mobile moccasin model modify \
    moisture molar molecule moment monarch mongoose monitor monsoon month moon moorland more morning mosaic mosquito \
    motor mouse movie muffin mulberry mule multiply mural muscle museum mushroom music muskrat mustard mutual muzzle \
    myrtle mystery myth nacho name napkin narrate narwhal nation nautical navigate navy nebula nectar needle neglect \
    neighbor neon nephew neptune nerve network neutral newborn news next nibble nickel niece noble noctuary nomad \
    noodle north notable notch note notice nougat noun novel nozzle nugget nurse nutmeg nutshell nylon oarsman oasis \
    oatmeal obelisk obey object oblige oboe observe obtain obvious occur ocean ocelot octagon october odor offer \
    office offshore oleander olive omega omelet omit onion online onyx opal open opera opinion option oracle oratory \
    orbit orchid order ordinary oregon organ orient origin oriole ornament osprey ostrich ounce outback outdoor \
    outer outfit outlaw outpost outside overture owner oxbow oxide oxygen oyster ozone pacific paddock pageant pair \
    pajamas palace palette palomino pamphlet pancake panda panel panic panorama pansy pantry papaya paper paprika \
    papyrus parade parcel pardon parent parlor parsley party pass pasta pathway patio patrol pattern pause pave \
    pavilion payment peace peanut pebble pecan peel pelican pencil penguin pension people pepper perch perfect \
    perhaps period perky person petal petunia phantom pharmacy pheasant phone photo phrase physics piano piccolo \
    picnic picture pier pigeon pilgrim pillow pilot pimento pinecone pink pinwheel pioneer pipe pirate pitch pixel \
    pizza plain planet plaster plate play plaza pledge plenty pliers pluck plug plunge plural plywood podium poem \
    point police polka pollen polo polygon pomelo pond popcorn poplar poppy porridge portrait pose position possum \
    postcard potato pouch poultry power practice praise praline prawn preach precise predict prefer prelude premium \
    prepare present pretty price priest primary prism private produce profit program project prologue promise proof \
    proper proud proverb prune public pudding pulp pulse puma pumice pumpkin pupil puppet purchase purple push \
    pyramid python quadrant quail qualify quarry quebec queen query quest quick quince quiver quiz rabbit raccoon \
    radar radio rainbow raisin rally ranch random range rank rapid rare rattle ravine react ready reason rebound \
    recall receive recipe record recycle reduce redwood reef reflect refuge regatta region regular reindeer reject \
    relax release relic remain remedy remind remote render renew rent repair repeat report reptile rescue resemble \
    resist result retire return reunion reveal review reward rhapsody rhino rhubarb rhyme rhythm ribbon rich ridge \
    rigging rigid ripple risk ritual rival river roadway robe robin robot rock rodeo romance rookie rooster rosemary \
    rotate rotunda route rowboat royal rubber rucksack ruffle rugby runway safari saffron saga sailor salad salon \
    salsa salt salute samovar sandal sapling sapphire sardine sarong satchel satin saturn sauce sauna sausage \
    savanna savory scaffold scale scan scarf scatter scene scheme school science scissors scoop score scout scrap \
    screen script scroll scrub sculptor seagull seahorse search seashell secret section sedan segment seller seminar \
    senate send senior sentence separate sequel serene series serpent sesame session shade shaft shallow shampoo \
    shark shawl sheep shelf sherbet shield shine ship shirt shoe shoulder shovel shower shrimp shrug shuffle shutter \
    sibling sidewalk sierra sign silent silk silver similar simple siphon siren sister sitar size sketch skill skim \
    skunk skylark slab sled sleek slender slice sling slipper slogan slope slot small smart smelt smile smog smoke \
    smooth snack snail snake snap sneeze snorkel snow snug soccer social soda soft soldier solid solve sonar \
    songbird soothe soprano sorbet sorcerer soul source south space spaniel sparrow spatula speak special speed \
    spell sphere sphinx spike spinach spiral splash splendid split spoil sponge spoon sport spray spread spring \
    sprout spruce spur square squid stable stadium staff stage stair stamp stand starfish statue stay steam steel \
    stencil step stereo stick stirrup stomach stone stool stork straw street strike strudel stucco study style \
    subject submit subtle suburb subway succeed sudden suede sugar suggest suit sulfur sultan summer sunrise super \
    supply surf surgeon surplus survey sushi sustain sweater sweet swift switch sword sycamore syllable symbol \
    symptom syrup system tablet tackle taco tactic tadpole talent talk tandem tangent tape target tariff tarragon \
    tart tassel taxi teacup teapot technic teddy tempo tenant tennis tenor terminal terrace textile thank thaw \
    theater theme theory thermos thick thistle thorn thrill throat thumb thunder ticket tidal tide tiger tilt timber \
    timid tinsel tiny tiramisu title toboggan today toddler together token tomato tombola tomorrow tongue tonic \
    tooth topaz topiary torch tornado tortoise total toucan toward towel track trade traffic trail tramp transit \
    trapeze travel tray treasure treetop trek trellis trend triangle tribe trillium trim trinket tripod triumph \
    trolley trombone troop trophy trout true trumpet trunk trust truth tuba tugboat tulip tundra tunnel turbine \
    turkey turmeric turnip turtle tutor tuxedo tweed twig twilight twinkle twirl twist typhoon typical udder ukulele \
    ultra umbrella umpire uncle uncommon unfair unfold unhappy unicorn uniform unique unison universe unknown unlock \
    unusual unveil update uphill upland upper upright uproar upstairs uptown urban urchin urgent usable usher \
    utensil utility utmost utopia utter vacant vaccine vacuum vagabond valid valve vanguard vanish vapor vase \
    vaulted vector veil velocity velvet vendor venom venture venue veranda verdict verify verse vessel veteran \
    viaduct vibrant vicar victory video view vigor village vinegar vintage vinyl viola virtue visa viscount visit \
    visual vital vivid voice volcano voltage volume voyage waffle wage wagon waist walnut walrus waltz want warbler \
    wardrobe warrior wash water wayfarer wealth weave wedding weekend welcome whale wharf wheat wheel whisk white \
    wicker width wife windmill wingspan winter wisdom wisteria wombat wonder woodland wool work world woven wrap \
    wreath wrestle wrinkle yacht yearbook yoga yogurt young yucca zebra zenith zeppelin zigzag zinc zinnia zipper \
    zodiac zucchini
    """
}
