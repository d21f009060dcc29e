"""The word orders of questions about facts, words, days and numbers (see orders.py).

KINDS[name] holds grammars for a thing ("x"), a clause ("i"), a question ("d"), a statement that
may be true or not ("s"), a question with its verb first ("q") and whole sentences ("own").
"""


KINDS = {
    "capital": dict(
        x="""[the|the|the name of the] [capital|capital|capital city|main city|chief city] of {c}|{c}'s capital[| city]|the city [that|which] is the capital[| city] of {c}|the capital [that|which] {c} has|the capital [in|for] {c}""",
        i="""what [the|the] [capital|capital city] of {c} is[| called| named]|[which|what] [city|town|place] is the capital[| city] of {c}|what {c}'s capital is|how the capital of {c} is called|what [people|we|they] call the capital of {c}|which city {c} has as [its|a] capital|which capital {c} has|what city the capital of {c} is""",
        d="""[which|what] [city|town|place|one] is the capital[| city] of {c}|what is the capital[| city] of {c} [called|named|again]|how is the capital of {c} called|what [do|would] [you|people|we|they] call the capital of {c}|[which|what] [city|town] is {c}'s capital|{c} has [what|which] [city as its capital|city for a capital|capital city]|what name does the capital of {c} [have|bear|carry]|[what|which] capital [does {c} have|belongs to {c}|is that of {c}|has {c}]|the capital[| city] of {c} is [what|which|which city|called what|named what]|what is the capital[| city] [of|in|for] {c}|of {c}, [what|which city] is the capital [called|city]|[for|in] {c}, [what|which] is the capital[| city]|does {c} have a capital, and [what|which city] is it|where is the capital of {c}, in which city""",
        own="""{c}: [capital|its capital|the capital|which capital|which city is the capital|name its capital|what is the capital|tell me the capital][.|?]
            [thinking|speaking|talking] of {c}, [what|which city] is [its|the] capital?
            [I am going to|I travel to|I read about|I was in|I live in|my friend lives in|we flew to|I have a map of|I love|my sister is in|I dream of|this book is about|we learn about|I come from|I want to see|next year we visit|a letter came from] {c}. [what|which city] is [its|the] capital[| there| called| city| again]?
            [take|consider|look at|think of|imagine|now to|next comes|we come to] {c}. [what is its capital?|name its capital.|which city is the capital?|tell me its capital.|what capital does it have?|give me the capital.|and its capital?|do you know its capital?|say its capital.]
            [country|land|my country|the country]: {c}. [capital|its capital|the capital]?
            [the capital|its capital], [if|when] the [country|land] is {c}[?|, is what?|, please.]
            {c} is a [country|land]. [what is its capital?|name its capital.|which city is the capital?|tell me its capital.|what is the capital called?]"""),
    "capital again": dict(
        own="""[and|and then|now|next|next,|okay,|good, and|thanks, and|then|also|what about|and what about|how about|right, and|fine, now|what is it for|the same for|do the same for|once more for|please also|and now|after that|nice. And|great. Now|again, for|and again for|try|now try|go on with|continue with|now take|now to|and with|and the one of|and that of|now that of] {c}[?|.|, please.| then?| too?| as well?| now?]
            [and|now|what is|next|also|good, and|then|please,|okay,] [the capital|its capital|the capital city] [of|for] {c}[?|.|, please.| then?| too?]"""),
    "capital of": dict(
        x="""the [country|land|nation|state] [with the capital|whose capital is|that has the capital|governed from|with its capital at] {x}|the [country|land] [of which|whose capital city] {x} is the capital""",
        i="""[which|what] [country|land|nation] [has {x} as its capital|{x} is the capital of|has the capital {x}|{x} belongs to as its capital|is ruled from {x}|calls {x} its capital]|of which [country|land] {x} is the capital|whose capital {x} is|where {x} is the capital""",
        d="""[which|what] [country|land|nation|state] [has {x} as its capital|has {x} as capital|is {x} the capital of|has the capital {x}|has {x} for a capital|does the capital {x} belong to|do we know by its capital {x}]|{x} is the capital[| city] of [which|what] [country|land|nation|state]|of [which|what] [country|land|nation] is {x} the capital[| city]|[of which land|of what country] {x} is the capital|whose capital[| city] [is|would be] {x}|{x} is the capital of [what|whom|which place]|[for|in] which [country|land] is {x} the capital|the capital of [which|what] [country|land|nation] is {x}|what is {x} the capital[| city] of|where is {x} the capital|which country's capital is {x}""",
        own="""{x} is [a capital|a capital city|some capital|the capital of a country|the capital of some country|a city and a capital]. [of which country|of which land|of what country|which country has it|whose|which country|name the country|where|of what|which country is it|which country do I mean|tell me the country][?|.]
            [I am in|I live in|I was in|we are in|my friend is in|we flew to|my letter comes from|we see] {x}, [the capital|a capital|the capital of a country|a capital city]. [which country is that|in which country am I|of which country|what country is it|which country has it|which land is it]?
            {x}: [which country|the capital of which country|whose capital|what country|of which country|capital of what|of what|name the country]?"""),
    "continent": dict(
        x="""the continent [of {c}|that {c} is on|{c} is on|where {c} is|{c} is part of|on which {c} is|{c} belongs to|with {c} on it]|the part of the world [where {c} is|that {c} is in]|{c}'s continent""",
        i="""[which|what] [continent|part of the world] {c} is [in|on|part of]|[on|in] which [continent|part of the world] {c} [is|lies]|where {c} is[| in the world| on the map]|[which|what] continent {c} [belongs to|lies on|is found on]|where [I|we|you] find {c}""",
        d="""[which|what] continent is {c} [on|in|part of|found on|located on]|[on|in|to] [which|what] [continent|part of the world] [is {c}|is {c} found|does {c} lie|can I find {c}|would you look for {c}|do you find {c}|do I look for {c}]|[which|what] continent [does {c} lie on|has {c} on it|holds {c}|includes {c}|is the home of {c}|do we find {c} on]|where [is|lies] {c}[| on the globe| on earth| on the map|, on which continent]|{c} is [part of|in] [which|what] continent|{c} is in [which|what] part of the world|[do you|can you] find {c} in Europe, in Asia or where|the continent of {c} is [what|which|called what]|what is the continent of {c}""",
        own="""[I am going to|I travel to|I read about|my friend lives in|we flew to|I want to see|I come from|I have never been to] {c}. [which continent is that|on which continent is it|where is that|what continent is it on|which part of the world is that|where in the world is it]?
            {c}: [which continent|on which continent|where is it|continent|what continent|which part of the world|Europe, Asia or what]?
            [look at|take|think of|find] {c} on [the|a|your] [map|globe]. [which continent is it on|where is it|on which continent|which continent is that]?"""),
    "language": dict(
        x="""the language [of|in|spoken in|used in] {c}|the language [that people|people|they|that they|children|that children] [speak|use|talk|learn] in {c}|{c}'s language|the [main|common|usual|official] language [of|in] {c}|the name of the language [of|in] {c}""",
        i="""[what|which] language [people|they|children|the people|men and women] [speak|use|talk] in {c}|[what|which] language is [spoken|used|common|heard] in {c}|what [people|they|the people] speak in {c}|how people [talk|speak] in {c}|in which language they [talk|speak|write] in {c}|what language {c} [has|speaks|uses]""",
        d="""[what|which] language [do|would] [people|they|children|we|the people|most people|families|teachers] [speak|use|talk|read|write] in {c}|[what|which] language [is|is mostly|is usually] [spoken|used|common|heard|talked|written] in {c}|in {c}[,||, then,] [what|which] language [do they speak|is spoken|do people speak|is used|do they use|do people talk|do I hear|do I need]|what do [people|they|the people|children] [speak|talk] in {c}|[what|which] language does {c} [speak|have|use]|[what|which] is the language [of|in|spoken in] {c}|they speak [what|which language] in {c}|[people|the people|children|they] in {c} [speak|use|talk|learn] [what|which|what] language|in [what|which] language do [people|they] [talk|write|sing|read] in {c}|[what|which] language [should I learn|do I need|must I know|can I use|would you speak|will they speak|shall I speak] [in|for] {c}|what is [spoken|the language] in {c}""",
        own="""[I am going to|I travel to|my friend lives in|we fly to|I want to live in|my uncle works in|I come from|soon I am in|I got a letter from|next week we see] {c}. [what language do they speak there|which language is spoken there|what do people speak|which language should I learn|what language do I need|how do people talk there|what do they speak|which language is that]?
            {c}: [which language|what language|language|what do they speak|which language do they speak|what is the language|people speak what|which language is spoken]?
            [take|think of] {c}. [what language do they speak there|which language is spoken there|what is the language]?
            [to|if I want to] [talk|speak] [with|to] people in {c}, [which language do I need|what language do I learn|which language is right|what should I speak]?"""),
    "opposite": dict(
        x="""[the|the|an] opposite [of|for|to] [{w}|{w}|the word {w}|"{w}"]|the word [that is|that means] the opposite of {w}|the contrary of {w}|the reverse of {w}|[the word|a word] opposite [of|to] {w}|a word for not {w}|the [other|opposite] side of {w}|{w}'s opposite|what is not {w}""",
        i="""what the opposite of [{w}|the word {w}] is|[which|what] word [is|means] the opposite of {w}|how to say the opposite of {w}|what is the opposite of {w}|how [you|we|people|they] [say|write] the opposite of {w}|what [we|people|they] say for not {w}|what [something|a thing] is if it is not {w}|what {w} turns into when turned around""",
        d="""[which|what] [word|one word] [is|means|says|gives|has the meaning of] the [opposite|contrary|reverse] of [{w}|"{w}"|the word {w}]|what is the [opposite|contrary|reverse] [of|to|for] [{w}|"{w}"|the word {w}|{w}, in one word]|the opposite of [{w}|"{w}"|the word {w}] is [what|which|what word|called what]|what [do|would] [you|we|people] [call|say for] the opposite of {w}|how do [you|we|I] say the opposite of {w}|what is not {w}, but [the opposite|the other way around]|not {w}, [but what|then what|what then|what is it]|if [it|something|a thing] is not {w}, [what|then what] is it|of {w}, what is the [opposite|contrary]|{w} has [what|which] [opposite|word as its opposite]|[which|what] is {w}'s opposite|when it is not {w}, it is what""",
        own="""{w}: [the opposite|what is the opposite|opposite|its opposite|which word is the opposite|say the opposite|name the opposite|and the opposite][.|?]
            [take|I have|here is|my word is|the word is|I give you|look at|think of|I write|we have|listen to] [the word {w}|{w}|"{w}"]. [what is the opposite?|name its opposite.|which word is the opposite?|tell me the opposite.|give me the opposite.|and the opposite?|what is its opposite?|say its opposite.]
            [turn|change|put] [{w}|the word {w}] [around|into the opposite|the other way around|into its contrary][.|, please.]
            [I say|my friend says|they write|we write] {w}, [what is the opposite?|you say the opposite.|what do you say for the opposite?|and you give me the opposite.|so the opposite is what?]
            [if I say|when I say|if I write] {w}, [what is the opposite?|then say the opposite.|what do you say for the opposite?|please give me the opposite.|then the opposite is what?]"""),
    "word again": dict(
        own="""[and|and then|now|next|next,|okay,|good, and|thanks, and|then|what about|and what about|how about|right, and|fine, now|what is it for|the same for|do the same for|once more for|and now|after that|nice. And|great. Now|again, for|and again for|try|now try|go on with|continue with|now take|now to|and with|and that of|now that of|and if it is|please also do] [{w}|the word {w}|"{w}"][?|.|, please.| then?| too?| as well?| now?]"""),
    "plural": dict(
        x="""the plural[| form] of [{w}|the word {w}|"{w}"|one {w}]|the [word|name|form] for [more than one|many of the thing|two of the thing] {w}|{w} in the plural|{w}'s plural|the word for many, when one is a {w}|the form of {w} for [many|more than one|two]""",
        i="""what the plural[| form] of {w} is|how [to form|to say|to write|you form|we say|you write|they write] the plural of {w}|how to say more than one {w}|what [we|you|people] call [two|more than one|many|three] of the thing {w}|what {w} is in the plural|which word is the plural of {w}""",
        d="""what is the plural[| form] [of|for] [{w}|the word {w}|"{w}"]|[which|what] [word|form] is the plural of [{w}|the word {w}]|how [do you|do we|does one|would you|can I|do they] [say|form|write|make|build] the plural of {w}|the plural of [{w}|the word {w}] is [what|which word|called what]|one {w}, [two|three|many|ten|five] [what|of what]|what is {w} in the plural|what [do|would] [you|we|people] [say|write|call it] for more than one {w}|if there [is|was] not one {w} but [two|three|many], what do [I|you|we] say|one is a {w}, [two|many|three] are what|how does {w} look in the plural""",
        own="""{w}: [the plural|what is the plural|plural|one of them, now two|say the plural|in the plural][.|?]
            [take|I have|here is|my word is|the word is|I give you] [the word {w}|{w}|"{w}"]. [what is the plural?|name its plural.|tell me the plural.|give me the plural.|put it in the plural.|say it for many.]
            [put|turn|change|bring] [{w}|the word {w}|"{w}"] [into|in] the plural[.|, please.| form.]
            [I see|here is|I have|there was|we bought|he has] one {w}. [you have two what|now there are two what|what are two of them called|and many are called what|what do I say for three]?"""),
    "past": dict(
        x="""the past[| tense| form] of [{w}|the word {w}|"{w}"|the verb {w}]|{w} in the past[| tense| form]|the form of {w} for yesterday|{w}'s past tense|the word for yesterday, when today I {w}""",
        i="""what the past[| tense| form] of {w} is|how [to form|to say|to write|you form|we say|you write] the past[| tense] of {w}|what {w} is in the past[| tense]|how to put {w} in the past[| tense]|which word is the past of {w}|what I did yesterday if I {w} today""",
        d="""what is the past[| tense| form] [of|for] [{w}|the verb {w}|"{w}"|the word {w}]|[which|what] [word|form] is the past[| form] of [{w}|the verb {w}]|how [do you|do we|does one|would you|can I|do they] [say|form|write|make|put] {w} in the past[| tense]|the past[| tense| form] of {w} is [what|which word|called what]|today [I|we|you|they] {w}, yesterday [I|we|you|they] [what|did what]|what is {w} in the past[| tense]|if [I|we|they] {w} today, what did [I|we|they] do yesterday|what becomes of {w} in the past tense|yesterday it was not {w} but what""",
        own="""{w}: [the past tense|what is the past|past|say it for yesterday|its past form|in the past tense][.|?]
            [take|here is|my verb is|the verb is|I give you] [the verb {w}|{w}|"{w}"]. [what is the past tense?|name its past.|tell me the past form.|give me the past.|put it in the past.|say it for yesterday.]
            [put|turn|change|bring] [{w}|the word {w}|the verb {w}|"{w}"] [into|in] the past[.| tense.|, please.| form.]
            [today|now|every day] [I|we|they] {w}. [yesterday|last year|last week] [I|we|they] [what|did what]?"""),
    "colour": dict(
        x="""the colour [of|that belongs to] {w}|the colour that {w} has|the colour {w} has|what colour {w} is|{w}'s colour|the usual colour of {w}|the name of the colour of {w}""",
        i="""[what|which] colour {w} [is|has|normally is|usually has]|what the colour of {w} is|how {w} is coloured|in [what|which] colour [I paint|to draw|I should draw|we see] {w}""",
        d="""[what|which] colour is {w}|[what|which] colour [do|would] [you|we|people|I] [see on|give|use for|take for|paint|need for|choose for|expect of] {w}|{w} [is|has|is of|comes in] [what|which] colour|what is the colour of {w}|[what|which] is the [usual|normal|right] colour of {w}|in [what|which] colour [do I paint|should I draw|do we see|would you paint] {w}|the colour of {w} is [what|which|called what]|of [what|which] colour [would {w} be|do you think {w} is]|[what|which] colour [has {w}|comes with {w}|belongs to {w}|goes with {w}|suits {w}]""",
        own="""[I want to|I will|help me, I|my son wants to|we] [paint|draw|colour] {w}. [which colour do I need|what colour is right|which colour|what colour should it be|which colour is it|which pen do I take]?
            {w}: [which colour|what colour|colour|its colour|red, green, or what|what is the colour]?
            [look at|think of|imagine|take] {w}. [which colour do you see|what colour is it|name the colour|which colour]?"""),
    "sound": dict(
        x="""the [sound|noise|voice|call|cry] of {w}|the [sound|noise] [that|which] {w} makes|what {w} says|the word for the sound of {w}|the sound I hear from {w}""",
        i="""what [sound|noise] {w} makes|what {w} says|how {w} [sounds|speaks|goes|calls]|what the [sound|noise] of {w} is|[which|what] sound comes from {w}""",
        d="""[what|which] [sound|noise] [does {w} make|is made by {w}|comes from {w}, then|do we hear from {w}|is that of {w}|would {w} make|can {w} make|do I hear when {w} speaks]|what does {w} [say|call|cry|shout]|how does {w} [sound|go|speak|talk|call]|{w} [says|makes] what[| sound| noise]|what is the [sound|noise|voice] of {w}|the sound of {w} is [what|which|called what]|if {w} could talk, what would it say|what do you hear when {w} speaks""",
        own="""{w}: [which sound|what sound|what does it say|its sound|how does it go|sound]?
            [imagine|think of|there is|I see|I hear|here comes|look, there is] {w}. [what does it say|which sound does it make|what do you hear|how does it sound|what noise does it make]?
            [make|imitate|do|play] [the sound of|the noise of|the voice of] {w}[.| for me.|, please.]"""),
    "young": dict(
        x="""the [name of|word for|right word for|name for] [a|the] [baby|young|small|little] {w}|the [young|baby|child|little one] of a {w}|[the word|the name] for the [young|child|baby] of a {w}|a baby {w}'s name""",
        i="""what a [baby|young|little|very young] {w} is called|what [we|you|people|they] call a [baby|young|little] {w}|how a [baby|young|little] {w} is called|what the [young|child|baby|little one] of a {w} is called|which word means a [young|baby] {w}""",
        d="""what [do|would] [you|we|people|they] call [a|the] [baby|young|little|very young] {w}|what is [a|the] [young|baby|little|newborn] {w} [called|named]|what is the [young|child|baby|little one] of a {w} [called|named]|[which|what] word [do we use|is used|stands|is right] for a [baby|young|little] {w}|how is a [baby|young|little] {w} [called|named]|a [baby|young|little] {w} is [what|called what|named what]|the [young|baby|child] of a {w} is [what|called what]|what is the [name of|right word for|special word for] a [young|baby|little] {w}|if a {w} has a [baby|child|young one], what is it called""",
        own="""[a|our|the|my] {w} [has|had|got] a [baby|young one|child|little one]. [what is it called|what do we call it|which word is right|how is it called|what do you call it|what is that]?
            [baby|young|little] {w}: [what is it called|which word|what is the word|the right word|what do you call it]?
            [when|if|while] a {w} is [young|small|a baby|very little], [what is it called|what do we call it|which name does it have|what do you say]?"""),
    "category kind": dict(
        x="""the kind of thing [that|] {w} is|the sort of thing [that|] {w} is|the [group|class|kind] that {w} belongs to|the [group|class] of {w}""",
        i="""what kind of [thing|object] {w} is|what sort of thing {w} is|what type of thing {w} is|[which|what] [group|kind of thing] {w} belongs to|in which group {w} is|under what {w} is counted""",
        d="""what [kind|sort|type|class] of [thing|object] [is|would be|might be|do you call|do you think is] {w}|[which|what] [kind|sort|type] of thing is {w}|{w} is [what kind|which kind|which sort|what type] of thing|to which [kind|sort|group|class] of things does {w} belong|of [what|which] [kind|type] is {w}|in [what|which] group [is|do we put|would you put] {w}|what group does {w} belong to|under which kind of thing [do we|would you] [count|put|list] {w}""",
        own="""{w}: [what kind of thing|which kind of thing is it|what sort of thing|what type of thing is that|kind of thing]?
            [take|look at|here is|think of|I have|consider] {w}. [what kind of thing is it|what sort of thing is that|which type of thing is it|what kind of thing]?"""),
    "category or": dict(
        q="""is {w} {x} or {y}|is {w} {x} or is it {y}|would you call {w} {x} or {y}|do we call {w} {x} or {y}|is {w} more of {x} or {y}|do you say {w} is {x} or {y}|do you think {w} is {x} or {y}|could {w} be {x} or {y}""",
        i="""[if|whether] {w} is {x} or {y}|what {w} is, {x} or {y}|which {w} is, {x} or {y}|what kind of thing {w} is, {x} or {y}""",
        d="""what [is|would be|do you call] {w}, {x} or {y}|{w} is [what|which], {x} or {y}|which of the two is {w}, {x} or {y}|which is right for {w}, {x} or {y}|what do [we|you|people] call {w}, {x} or {y}""",
        own="""{w}: [is it|would you say|do you call it|is that|that is|perhaps] {x} or {y}?
            {x} or {y}: [what is {w}|which is {w}|which one is {w}|what do you call {w}|where does {w} belong]?
            [take|look at|here is|think of|I have|consider] {w}. [is it|is that|do you call it|would it be] {x} or {y}?"""),
    "definition": dict(
        x="""the [meaning|sense|definition|explanation] of [{b}|the word {b}|"{b}"|a word like {b}]|[a|a short|the|your|a good|a simple|some] [definition|explanation|description] of [{b}|{w}|the word {b}|"{b}"|what {w} is]|what {w} is|the right words for {w}|what {b} means""",
        i="""what {w} is[| exactly| in fact| really]|what [the word {b}|{b}|"{b}"] [means|stands for|says|tells us]|what is meant by [{b}|the word {b}|"{b}"]|how to [explain|define|describe] [{w}|{b}|the word {b}]|what [people|we|they|you] mean [by|with] [{b}|the word {b}]|what [people|we|they] call {w}|what {w} might be|how {w} is [defined|explained|described]""",
        d="""what [does|would|might|can|may] [the word {b}|{b}|"{b}"|the English word {b}] [mean|stand for|say|tell us|refer to]|what is [{w}|{w}, in short|{w}, in simple words|{w}, in your words|{w}, in one sentence]|what [really is|actually is|precisely is|is that,|would be|might be|could be] {w}|how [do|would|can|could|should] [you|I|we|one|people] [define|explain|describe] [{w}|{b}|the word {b}|"{b}"][| in short| to somebody| to me| in one sentence| in simple words|]|what is the [meaning|sense|definition|explanation] of [{b}|the word {b}|"{b}"]|what [do|would] [you|people|we|they] [mean by|understand by|call|say about|know about] [{b}|{w}]|what [sort of|kind of] thing do [people|we|you] call {w}|what is it that [people|we|they] call {w}|[what|which thing] is [meant by|called|named|known as] [{b}|{w}]|{w} is what|{b} means what|what is [this thing|that thing|the thing called] {b}|do you know what {w} is""",
        own="""[explain|define|describe] [{w}|{b}|the word {b}|"{b}"|the word "{b}"|the meaning of {b}|what {w} is][| to me| for me| for a child| shortly| in short| in one sentence| in a sentence, please| in simple words| as well as you can| in your own words|, please].
            {SOFT}[explain|define|describe] [{w}|{b}|the word {b}|"{b}"|the meaning of {b}|what {w} is][| to me| for me| shortly| in short| in one sentence| in simple words|, please].
            {YOU}[explain|define|describe] [{w}|{b}|the word {b}|"{b}"|the meaning of {b}|what {w} is][| to me| for me| shortly| in one sentence| in simple words|, please]?
            [I want you to|I ask you to|I would like you to|your task is to|it would help to|try to|you should|please try to] [explain|define|describe|tell me about] [{w}|{b}|the word {b}|what {w} is].
            [I|we|my son|my daughter|a child|my friend] [read|heard|found|saw|met|wrote|used|never heard|learned|stumbled over|did not know|asked about] the word [{b}|"{b}"]. [what is that|what does it mean|what does that mean|what is it|can you explain it|what is meant by it|can you help me|please explain it|how would you explain it|what should I know about it|tell me its meaning][.|?]
            [I|we|my son|my daughter|a child|my friend] [read about|heard of|saw|asked about|dreamt of|talked about|wrote about|never heard of|did not know|had to describe|sang about] {w}. [what is that|what is it|what do we mean by that|can you explain it|what should I know about it|how would you explain it|can you describe it|what does the word mean][.|?]
            [{b}|{w}|the word {b}]: [what is that|what is it|what does it mean|explain it|define it|meaning|the meaning, please|what would you say|a definition, please|describe it|what do you know about it|what does the word mean|can you explain it][.|?]
            [in a few words|in one sentence|with simple words|in short|in your own words|with two or three words|in easy words|with other words], [what is {w}|what does {b} mean|explain {w}|define {b}|tell me what {w} is|describe {w}][.|?]
            [to|for] [a child|somebody|my son|a friend|a guest], [how do you|how would you|how can I|how should I|how do I] [explain|describe|define] [{w}|the word {b}]?
            {WHO} [asks|asked|wants to know|would like to know] what [{w} is|{b} means]. [what do I say|what do I answer|what should I say|can you help|what can I tell them|please help]?
            [tell me|tell us|say|teach me|let us hear] [about|something about|a little about|more about|in short about] {w}.
            [is there|do you have|can you find|do you know|have you got] [a definition|a good definition|an explanation|a short explanation] [of|for] [{w}|{b}|the word {b}]?
            [let us talk about|now to|the next word is|my word is|the word is|next word:|new word:] [{w}|{b}]. [what is it|what is that|what does it mean|explain it, please|how do you define it][.|?]"""),
    "how many": dict(
        x="""the [number|answer]: how many {q}|how many {q}""",
        i="""how many {q}|exactly how many {q}|how many {q} in all""",
        d="""how many {q}|how many {q}, exactly|how many {q} in all|about how many {q}|exactly how many {q}""",
        own="""[let us count|count with me|count them|I am counting|we are counting|help me count|I tried to count]: how many {q}?
            [what is the number|which number is it|give me the number|tell me the number|the number, please]: how many {q}?
            [I think I know|my son asks|we have to write|I have to say|at school they ask|in the quiz they ask|the teacher asks] how many {q}. [can you say it|do you know|what is the number|what do I write|and you|can you help]?"""),
    "after": dict(
        x="""the[| next] {k} [after|right after|that comes after|that follows|just after|following|directly after|which comes after|behind] {a}""",
        i="""[which|what] {k} [comes|follows|is|stands] [after|right after|just after|directly after] {a}|what comes [right after|just after|next after|after] {a}|[which|what] {k} follows {a}|[which|what] {k} is next after {a}|what the {k} after {a} is""",
        d="""[which|what] {k} [comes|is|stands|do we have|do you get|will come|goes|must come] [after|right after|just after|directly after|next, after|behind] {a}|[which|what] {k} follows[| directly] [after|on|upon] {a}|[which|what] is the[| very] next {k} after {a}|after {a}[,|,||] [which|what] {k} [comes|is next|follows|do we have|comes next|do you say]|{a} is followed by [what|which|which {k}]|the {k} [after|following|right after] {a} is [what|which|called what]|what [comes|follows|is next] [after|right after|just after] {a}|if [this|the] {k} is {a}, [what|which] is the next[| one]|when {a} is [over|done|past], what [is|comes] next|which {k} has {a} right before it""",
        own="""{a}: [what comes next|which {k} is next|what follows|and then|the next {k}|which {k} comes after it]?
            [we have|it is|now it is|I say|I wrote|we had|first there is] {a}[.|,] [what comes next|which {k} is next|what follows|which {k} comes after that|and what after that|which {k} do I say then]?
            [start|begin|go on] [with|from|at] {a}. [what comes next|which {k} is next|what {k} follows|and the next {k}]?"""),
    "before": dict(
        x="""the {k} [before|right before|that comes before|just before|directly before|ahead of|which comes before|in front of|preceding] {b}""",
        i="""[which|what] {k} [comes|is|stands] [before|right before|just before|directly before|ahead of] {b}|what comes [right before|just before|before] {b}|what the {k} before {b} is|[which|what] {k} is followed by {b}""",
        d="""[which|what] {k} [comes|is|stands|do we have|do you get|was there|goes|must come|came] [before|right before|just before|ahead of|in front of] {b}|[which|what] {k} [precedes|leads to] {b}|before {b}[,|,||] [which|what] {k} [comes|is there|was it|do we have|do you say]|{b} [comes|follows|stands] after [what|which|which {k}]|the {k} [before|right before|in front of] {b} is [what|which|called what]|what [comes|came|is] [before|right before|just before] {b}|[which|what] is the {k} [just|right|directly] before {b}|which {k} has {b} right after it|[which|what] {k} [do I say|do you say|did we have] before {b}""",
        own="""{b}: [what comes before it|which {k} was before|what came before|the {k} before it|which {k} comes before that]?
            [we have|it is|now it is|I say|I wrote] {b}[.|,] [what came before|which {k} was before|what was before that|which {k} comes before it|and what before that]?
            [go|count|take] [one|a step] back from {b}. [what do you get|which {k} is that|what {k} is it|where are you]?"""),
    "tomorrow": dict(
        i="""[what|which] day is {m}[, if today is|, when today is| if we have| if it is now|, given that today is] {t}|[what|which] day {m} is, [if|when] today is {t}""",
        d="""[if|when|as|since|given that|suppose|supposing] [today is|today we have|it is now|we have|it is] {t}[,|, then] [what|which] day is {m}|[what|which] day is {m} [if|when|as|given that] [today is|it is today|we have now] {t}|{m} is [what|which] day[, if|, when| if] today is {t}|today being {t}, [what|which] day is {m}""",
        own="""[today is|today we have|it is|now it is|my clock says it is|here today is|I know that today is|they say today is|we write|the paper says] {t}. [what|which|so what|so which|then what|and which|tell me what|say which] day is {m}[?|, then?|, please?]
            {t} is [today|the day today|what we have today|here]. [what|which|so which|and what] day is {m}[?|, then?]
            today: {t}. [and {m}|what is {m}|{m} is what|which day is {m}]?"""),
    "weekday": dict(
        x="""the {o} [day|weekday] of [the|a|every] week|the day [that|which] [is|comes] {o} in [the|a] week|the name of the {o} [day of the week|weekday]|the {o} weekday|day number {o} of the week""",
        i="""[which|what] day [is the {o}|is {o}|comes {o}] [in|of] [the|a] week|what the {o} day of the week is[| called]|how the {o} day of the week is called""",
        d="""[which|what] day is the {o} [of|in] [the|a] week|[which|what] [is|would be] the {o} [day of the week|weekday|day in a week]|[which|what] weekday is [the|] {o}|the {o} day [of|in] [the|a] week is [what|called what|which one]|[how is|what is] the {o} day of [the|a] week [called|named]|in [the|a] week, [what|which day] is [the {o}|the {o} one]|[which|what] day do we have {o} in [the|a] week""",
        own="""[count|going through|go through|look at] the days of the week: [which is|which one is|what is] the {o}[| one| day]?
            [a|the] week has 7 days. [which is|what is|name|tell me] the {o}[| one| day][.|?]"""),
    "monthno": dict(
        x="""the {o} month of [the|a|every|our] year|the month [that|which] [is|comes] {o} in [the|a] year|the name of the {o} month[| of the year]|month number {o}|the {o} of the 12 months""",
        i="""[which|what] month [is the {o}|is {o}|comes {o}] [in|of] [the|a] year|what the {o} month[| of the year] is[| called]|how the {o} month is called""",
        d="""[which|what] month is the {o} [of|in] [the|a] year|[which|what] [is|would be] the {o} month[| of a year| in a year]|the {o} month [of|in] [the|a] year is [what|called what|which one]|[how is|what is] the {o} month[| of the year] [called|named]|in [the|a] year, [what|which month] is [the {o}|the {o} one]|[which|what] month do we have {o} in [the|a] year|of the 12 months, [which|what] is the {o}""",
        own="""[count|going through|go through|look at] the months: [which is|which one is|what is] the {o}[| one| month]?
            [a|the] year has 12 months. [which is|what is|name|tell me] the {o}[| one| month][.|?]"""),
    "monthdays": dict(
        x="""the [number|count] of days [in|of|that {m} has, not of] {m}|how many days {m} has|how many days are in {m}|the length of {m}[| in days]|how long {m} is[| in days]""",
        i="""how many days {m} has|how many days are in {m}|how many days there are in {m}|how long {m} is[| in days]|how many days long {m} is|what the length of {m} is""",
        d="""how many days [does {m} have|has {m}|are in {m}|are there in {m}|long is {m}|does {m} count|can {m} have|do you find in {m}|belong to {m}|will {m} have|make {m}]|how long is [{m}|the month {m}|the month of {m}][| in days]|{m} [has|counts|lasts] how many days|in {m}[,|] how many days are there|what is the [length|number of days] of {m}|the month[| of] {m} has how many days|for how many days [does {m} last|do we have {m}|is it {m}]|with how many days does {m} end|the number of days in {m} is what""",
        own="""{m}: [how many days|how many days does it have|how long is it|the number of days]?
            [it is|soon it is|now we have|next month is|this month is] {m}. [how many days does it have|how many days are that|how long is it|how many days does this month have]?"""),
    "season": dict(
        x="""the season [of|in|that belongs to] {m}|the season [that|] {m} is in|the season [we have in|to which we count|around] {m}|the time of the year when it is {m}""",
        i="""[in|to] which season {m} [is|belongs]|[which|what] season {m} is in|[which|what] season [it is|we have] in {m}|what the season of {m} is|in what part of the year {m} is""",
        d="""in [which|what] season [is|lies|do we have|comes|falls|do you find] {m}|[which|what] season [is {m} in|has {m} in it|is it in {m}|is {m} part of|comes with {m}|is {m}|do you get in {m}|will it be in {m}|belongs to {m}]|{m} is [in|part of] [which|what] season|to [which|what] season [does {m} belong|do we count {m}]|what is the season [in|of] {m}|the season of {m} is [what|which]|is {m} [in spring, summer, autumn or winter|in winter or when|in spring or when]|[which|what] of the four seasons [is {m} in|has {m}]""",
        own="""{m}: [which season|what season|in which season is it|spring, summer, autumn or winter|season]?
            [it is|soon it is|now we have|next month is|this month is] {m}. [which season is it|what season is that|in which season are we|what season do we have]?"""),
    "days": dict(
        x="""[the|all|all the|the seven|the names of the|all seven|every one of the] days of [the|a] week|[the|all] [weekdays|seven days] in order|a list of the days of the week""",
        i="""[which|what] days [the week has|a week has|are in a week|there are in a week]|what the days of the week are[| called]""",
        d="""what are [the|all the|the seven] days of [the|a] week[| called]|[which|what] days [are there in|does it take to fill|are in|make|belong to] [the|a] week|how are the days of the week called|[which|what] days has a week"""),
    "months": dict(
        x="""[the|all|all the|the twelve|the names of the|all twelve|every one of the] months of [the|a] year|[the|all] twelve months in order|a list of the months[| of the year]""",
        i="""[which|what] months [the year has|a year has|are in a year|there are in a year]|what the months of the year are[| called]""",
        d="""what are [the|all the|the twelve] months of [the|a] year[| called]|[which|what] months [are there in|are in|make|belong to] [the|a] year|how are the months of the year called|[which|what] months has a year"""),
    "seasons": dict(
        x="""[the|all|all the|the four|the names of the|all four] seasons of [the|a] year|[the|all] four seasons in order|a list of the seasons[| of the year]""",
        i="""[which|what] seasons [the year has|a year has|are in a year|there are in a year]|what the seasons of the year are[| called]""",
        d="""what are [the|all the|the four] seasons of [the|a] year[| called]|[which|what] seasons [are there in|are in|make|belong to] [the|a] year|how are the seasons of the year called|[which|what] seasons has a year"""),
    "alphabet": dict(
        x="""[the whole|the full|the entire|our|the English] alphabet|[the|all|all the|the 26|every one of the] letters of [the|our] alphabet|the alphabet [from A to Z|in order|from the start]|all letters from A to Z""",
        i="""[which|what] letters [the alphabet has|are in the alphabet|there are in the alphabet]|what the letters of the alphabet are|how the alphabet goes""",
        d="""what are [the|all the] letters of [the|our] alphabet|[which|what] letters [are there in|are in|make|belong to] [the|our] alphabet|how does the alphabet go[| from A to Z]"""),
}
from orders import SOFT, WHO, YOU  # noqa: E402

KINDS["definition"]["own"] = KINDS["definition"]["own"].replace("{SOFT}", SOFT).replace("{YOU}", YOU).replace("{WHO}", WHO)
