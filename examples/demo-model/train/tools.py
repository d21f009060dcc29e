"""Conversations with tools in the published XML form."""

import json

import arithmetic as A
import facts as W
import skills as S
import talk as T
from orders import HASH
from skills import number, pick


def fn(name, description, **params):
    props = {k: {"type": t} for k, t in params.items()}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {"type": "object", "properties": props, "required": list(params)}}}


WEATHER = [fn("get_weather", "Get the weather in a city.", city="string"), fn("get_weather", "Current weather for a place.", city="string"), fn("get_weather", "Get the weather.", location="string"),
           fn("get_current_weather", "Get the weather in a city.", city="string")]
CALC = [fn("calculate", "Calculate an expression.", expression="string"), fn("calculate", "Work out a sum.", expression="string"), fn("calculator", "Calculate an expression.", expression="string")]
TIME = [fn("get_time", "Get the time in a city.", city="string"), fn("get_time", "Current time for a place.", city="string")]
TIMER = [fn("set_timer", "Set a timer.", minutes="integer"), fn("set_timer", "Start a timer.", minutes="integer")]

DEV_CITIES = ["Hamburg", "Milan", "Lyon", "Porto", "Bergen", "Osaka", "Toronto", "Chicago", "Sydney", "Mumbai", "Krakow", "Seville", "Glasgow", "Geneva", "Boston"]
HELD_CITIES = ["Turin", "Marseille", "Valencia", "Antwerp", "Gothenburg", "Kyoto", "Montreal", "Detroit", "Melbourne", "Calcutta", "Gdansk", "Zurich", "Edmonton", "Leeds", "Naples"]
HASH_CITIES = ["Stuttgart", "Bologna", "Bordeaux", "Granada", "Rotterdam", "Malmo", "Nagoya", "Vancouver", "Dallas", "Brisbane", "Chennai", "Poznan", "Basel", "Calgary", "Bristol", "Palermo", "Leipzig", "Houston", "Toulouse", "Tampere"]
OWN_CITIES = {"~": DEV_CITIES, "^": HELD_CITIES, HASH: HASH_CITIES}

ASK_WEATHER = ["What is the weather in {c}?", "How is the weather in {c}?", "What's the weather like in {c}?", "Is it warm in {c}?", "Is it raining in {c}?", "Tell me the weather in {c}.", "weather in {c}", "How warm is it in {c}?",
               "Do I need a coat in {c}?", "Check the weather in {c}.", "What is the weather like in {c} today?", "Could you check the weather in {c}?", "Can you look up how warm it is in {c}?", "Look up the weather in {c}.", "How cold is it in {c}?", "I am in {c}. How is the weather?", "I travel to {c}. What is the weather there?", "Is it cold in {c} now?", "~Could you look up the weather in {c}?", "~How cold is it in {c} now?", "Does it rain in {c}?", "Is the sun shining in {c}?", "Is there snow in {c}?", "Weather report for {c}, please.", "What about the weather in {c}?", "I need the weather in {c}.", "Give me the weather for {c}.", "How hot is it in {c} today?", "What is it like outside in {c}?", "Do I need an umbrella in {c}?", "Will it be warm in {c}?", "The weather in {c}?", "My sister lives in {c}. Is it warm there?", "Tomorrow I fly to {c}. How is the weather?", "What are the temperatures in {c}?", "Can you get the weather for {c}?", "Show me the weather in {c}.", "Say what the weather in {c} is like.", "Is it windy in {c}?", "Get the weather of {c}.", "Find the weather in {c}.", "How many degrees does {c} have?", "What should I wear in {c}?", "Is {c} sunny today?", "^What kind of weather do they have in {c}?", "^Please find out how the weather is in {c}.", "^Will I get wet in {c}?", "^I want to know the weather in {c}.", "~I am going to {c}. How is the weather there?"]
ASK_TIME = ["What time is it in {c}?", "What is the time in {c}?", "Tell me the time in {c}.", "How late is it in {c}?", "Can you tell me what time it is in {c}?", "Which time is it in {c}?", "time in {c}", "~Could you tell me the time in {c}?", "~Which time is it now in {c}?", "What does the clock say in {c}?", "Is it late in {c}?", "I need the time in {c}.", "Give me the time for {c}.", "Show me the time in {c}.", "The time in {c}?", "What's the time in {c}?", "Say what time it is in {c}.", "My brother is in {c}. How late is it there?", "Can you get the time in {c}?", "Check the time in {c}.", "Current time in {c}, please.", "Do you know the time in {c}?", "^I call a friend in {c}. What time is it there?", "^Please look up the time in {c}."]
ASK_TIMER = ["Set a timer for {m} minutes.", "Start a timer of {m} minutes.", "Wake me in {m} minutes.", "Please set a timer for {m} minutes.", "Can you set a timer for {m} minutes?", "I want a timer of {m} minutes.", "timer {m} minutes", "~I need a timer for {m} minutes.", "~Could you set a timer for {m} minutes?", "Set the timer to {m} minutes.", "I need a timer of {m} minutes.", "Start the timer: {m} minutes.", "Tell me when {m} minutes are over.", "Remind me in {m} minutes.", "The eggs need {m} minutes. Set a timer.", "Give me a timer of {m} minutes.", "Ring after {m} minutes.", "{m} minutes on the timer, please.", "Would you start a timer of {m} minutes?", "Make a timer for {m} minutes.", "Set an alarm in {m} minutes.", "^Please start a timer that runs {m} minutes.", "^Let a timer run for {m} minutes."]


def call(name, **args):
    return [{"type": "function", "function": {"name": name, "arguments": args}}]


def xml(calls):
    """The form in which the template writes calls, for checking."""
    f = calls[0]["function"]
    args = "".join(f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in f["arguments"].items())
    return f"<tool_call>\n<function={f['name']}>\n{args}</function>\n</tool_call>"


def city(r, held):
    if held:
        return r.choice(OWN_CITIES[held])
    if r.random() < 0.3:
        return r.choice(W.CITIES)
    while True:
        c = T.name_of(r, False)
        if not any(c in cities for cities in OWN_CITIES.values()):
            return c


def weather(r, held, tool):
    f = tool["function"]
    key = list(f["parameters"]["properties"])[0]
    c = city(r, held)
    deg, cond = r.randint(-15, 38), r.choice(W.CONDITIONS)
    result = r.choice([json.dumps({"temperature": deg, "condition": cond}), json.dumps({key: c, "temperature": deg, "condition": cond}), f"{deg} degrees, {cond}", f"{cond}, {deg} degrees"])
    return pick(r, held, ASK_WEATHER, "tool weather").format(c=c), call(f["name"], **{key: c}), result, f"In {c} it is {cond} and {deg} degrees.", f"The user asks about the weather in {c}. I can call {f['name']}."


def calc(r, held, tool):
    op, asks, kind = r.choice([("+", A.ADD, "add"), ("-", A.SUB, "sub"), ("*", A.MUL, "mul")])
    a, _, b = number(r, held, lambda: (r.choice([r.randint(2, 99), r.randint(100, 9999)]), op, r.choice([r.randint(2, 99), r.randint(100, 9999)])))
    c = {"+": a + b, "-": a - b, "*": a * b}[op]
    return pick(r, held, asks, kind).format(a=a, b=b), call(tool["function"]["name"], expression=f"{a} {op} {b}"), str(c), f"{a} {op} {b} = {c}.", f"This is a sum. I can call {tool['function']['name']}."


def clock(r, held, tool):
    c = city(r, held)
    t = f"{r.randint(0, 23):02}:{r.randint(0, 59):02}"
    result = r.choice([t, json.dumps({"time": t}), json.dumps({"city": c, "time": t})])
    return pick(r, held, ASK_TIME, "tool time").format(c=c), call("get_time", city=c), result, f"In {c} it is {t}.", f"The user asks for the time in {c}. I can call get_time."


def timer(r, held, tool):
    m, _ = number(r, held, lambda: (r.randint(1, 90), "timer"))
    result = r.choice(["ok", "done", json.dumps({"status": "ok"})])
    return pick(r, held, ASK_TIMER, "tool timer").format(m=m), call("set_timer", minutes=m), result, f"The timer is set for {m} minutes.", f"The user wants a timer of {m} minutes. I can call set_timer."


KINDS = [(WEATHER, weather, 4), (CALC, calc, 4), (TIME, clock, 1), (TIMER, timer, 1)]
NO_WEATHER = "I have no tool for that, so I do not know."


def tools(r, held):
    chosen = [r.choice(KINDS[0][0]), r.choice(KINDS[1][0])] if r.random() < 0.35 else [r.choice(k[0]) for k in r.sample(KINDS, r.choice([1, 1, 2]))]
    r.shuffle(chosen)
    think = r.random() < 0.15
    out = T.maybe_system(r, 0.1)

    def maker(tool):
        return next(k[1] for k in KINDS if any(t is tool for t in k[0]))

    x = r.random()
    if x < 0.12:  # a question that needs no tool
        it = T.item(r, held, [S.capital, S.opposite, S.definition, S.colour, S.plural, S.sequence, S.how_many], [1] * 7)
        return T.Talk(out + [T.user(it.ask), T.bot(it.full, it.think if think else None)], "tools", T.check(it), chosen, think)
    if x < 0.18:  # small talk with tools on offer
        t = T.small_talk(r, held)
        return T.Talk(out + t.messages, "tools", t.answers, chosen, False)
    missing = [k for k in KINDS[:1] + KINDS[2:] if not any(t in k[0] for t in chosen)]
    if x < 0.32 and missing:  # the tool is not there
        k = r.choice(missing)
        ask = k[1](r, held, k[0][0])[0]
        return T.Talk(out + [T.user(ask), T.bot(NO_WEATHER, "There is no tool for this." if think else None)], "tools", ["no tool"], chosen, think)
    tool = r.choice(chosen)
    ask, calls, result, answer, thought = maker(tool)(r, held, tool)
    start = [T.user(ask), T.bot("", thought if think else None, calls)]
    if held and r.random() < 0.5:  # judge the call itself
        return T.Talk(out + start, "tool call", [xml(calls)], chosen, think)
    end = [{"role": "tool", "content": result}, T.bot(answer, "The tool has answered." if think else None)]
    msgs = out + start + end
    if not held and r.random() < 0.4:
        ask, calls, result, answer, thought = maker(tool)(r, held, tool)
        msgs += [T.user(ask), T.bot("", None, calls), {"role": "tool", "content": result}, T.bot(answer)]
        think = False
        for m in msgs:
            m.pop("reasoning_content", None)
    return T.Talk(msgs, "tool result", [answer.rstrip(".")], chosen, think)


def no_tools(r, held):
    """The same questions without any tool: it says that it cannot know."""
    k = r.choice([KINDS[0], KINDS[2], KINDS[3]])
    ask = k[1](r, held, k[0][0])[0]
    return T.Talk(T.maybe_system(r) + [T.user(ask), T.bot(NO_WEATHER)], "unknown", ["do not know"])
