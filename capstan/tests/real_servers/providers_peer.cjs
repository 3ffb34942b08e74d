// Asks the stand-in for the providers with their own SDKs: a streamed answer with two parallel
// calls, its results, and an error. Prints what each SDK understood.

const Anthropic = require("@anthropic-ai/sdk").default;
const OpenAI = require("openai").default;
const { GoogleGenAI } = require("@google/genai");

const url = process.env.MODEL_URL;
const key = process.env.MODEL_KEY;
const schema = { type: "object", properties: { city: { type: "string" } } };
const told = { anthropic: {}, openai: {}, gemini: {} };

const claude = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const gemini = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: url } });

async function anthropicAnswer(messages) {
    const tools = [{ name: "weather", description: "d", input_schema: schema }];
    return claude.messages.stream({ model: "m", max_tokens: 100, messages, tools }).finalMessage();
}

async function openaiAnswer(messages) {
    const tools = [{ type: "function", function: { name: "weather", parameters: schema } }];
    const stream = openai.chat.completions.stream({
        model: "m", messages, tools, stream_options: { include_usage: true },
    });
    return stream.finalChatCompletion();
}

async function geminiAnswer(contents) {
    const tools = [{ functionDeclarations: [{ name: "weather", parameters: { type: "OBJECT", properties: { city: { type: "STRING" } } } }] }];
    const parts = [];
    let usage;
    for await (const chunk of await gemini.models.generateContentStream({ model: "m", contents, config: { tools } })) {
        parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
        usage = chunk.usageMetadata ?? usage;
    }
    return { parts, usage };
}

async function first() {
    const question = { role: "user", content: "weather?" };
    const answer = await anthropicAnswer([question]);
    const uses = answer.content.filter((block) => block.type === "tool_use");
    told.anthropic.text = answer.content.filter((block) => block.type === "text").map((block) => block.text).join("");
    told.anthropic.calls = uses.map((use) => [use.name, use.input]);
    told.anthropic.output_tokens = answer.usage.output_tokens;

    const completion = await openaiAnswer([question]);
    const message = completion.choices[0].message;
    told.openai.text = message.content;
    told.openai.calls = message.tool_calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
    told.openai.output_tokens = completion.usage.completion_tokens;

    const asked = { role: "user", parts: [{ text: "weather?" }] };
    const { parts, usage } = await geminiAnswer([asked]);
    const calls = parts.filter((part) => part.functionCall);
    told.gemini.text = parts.filter((part) => part.text && !part.thought).map((part) => part.text).join("");
    told.gemini.calls = calls.map((part) => [part.functionCall.name, part.functionCall.args]);
    told.gemini.output_tokens = usage.candidatesTokenCount + usage.thoughtsTokenCount;

    // The results, sent as each SDK sends them.
    const results = uses.map((use) => ({ type: "tool_result", tool_use_id: use.id, content: "sunny" }));
    const later = await anthropicAnswer([question, { role: "assistant", content: answer.content }, { role: "user", content: results }]);
    told.anthropic.after = later.content[0].text;
    const answers = message.tool_calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: "sunny" }));
    const next = await openaiAnswer([question, { role: "assistant", content: message.content, tool_calls: message.tool_calls }, ...answers]);
    told.openai.after = next.choices[0].message.content;
    const responses = calls.map((part) => ({ functionResponse: { name: part.functionCall.name, response: { output: "sunny" } } }));
    const last = await geminiAnswer([asked, { role: "model", parts: calls }, { role: "user", parts: responses }]);
    told.gemini.after = last.parts.map((part) => part.text).join("");
}

async function refused(name, ask) {
    try {
        await ask();
    } catch (error) {
        told[name].status = error.status;
    }
}

async function main() {
    await first();
    const question = { role: "user", content: "hi" };
    await refused("anthropic", () => anthropicAnswer([question]));
    await refused("openai", () => openaiAnswer([question]));
    await refused("gemini", () => geminiAnswer([{ role: "user", parts: [{ text: "hi" }] }]));
    console.log(JSON.stringify(told));
}

main();
