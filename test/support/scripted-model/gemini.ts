/** Gemini's generateContent API, whole and streamed. */
import { z } from "zod";
import { type Api, optional, parametersSchema, TOKENS, toolOf } from "./api.ts";
import type { Item } from "./script.ts";

const partSchema = z.object({
  text: optional(z.string()),
  thought: optional(z.boolean()),
  functionResponse: optional(z.object({ response: z.unknown().optional() })),
});
const contentSchema = z.object({ role: optional(z.string()), parts: z.array(partSchema).catch([]) });
const declarationSchema = z.object({
  name: z.string(),
  parameters: parametersSchema,
  parametersJsonSchema: parametersSchema,
});
const bodySchema = z.object({
  contents: z.array(contentSchema).catch([]),
  tools: z.array(z.object({ functionDeclarations: z.array(declarationSchema).catch([]) })).catch([]),
  generationConfig: optional(z.object({ responseMimeType: optional(z.string()) })),
});

/** What the program's own helpers ask for as JSON: who speaks next, which model fits. */
const HELPER = {
  reasoning: "-",
  next_speaker: "user",
  model_choice: "flash",
  complexity_score: 1,
  complexity_reasoning: "-",
};

const STATUSES: Readonly<Record<number, string>> = {
  401: "UNAUTHENTICATED",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
};
/** Of a day's quota, so that the program does not try again. */
const QUOTA = {
  "@type": "type.googleapis.com/google.rpc.QuotaFailure",
  violations: [{ quotaId: "GenerateRequestsPerDayPerProjectPerModel-FreeTier" }],
};

/** As the provider says it. */
const WORDS: Readonly<Record<number, string>> = {
  401: "API key not valid. Please pass a valid API key.",
  429: "You exceeded your current quota, please check your plan and billing details.",
};

export const gemini: Api = {
  path: /:(?:stream)?generateContent$/i,
  read: (body) => {
    const { contents, tools, generationConfig } = bodySchema.parse(body);
    const wantsJson = generationConfig?.responseMimeType === "application/json";
    const helper: Item = { by: "user", text: `[[say: ${JSON.stringify(HELPER)}]]` };
    return {
      model: "scripted",
      streams: false,
      items: wantsJson ? [helper] : contents.flatMap(itemsOf),
      tools: tools
        .flatMap(({ functionDeclarations }) => functionDeclarations)
        .map((one) => toolOf(one.name, one.parametersJsonSchema ?? one.parameters)),
    };
  },
  write: (turn, model, streams) => {
    const part =
      turn.kind === "run" ? { functionCall: { name: turn.tool, args: turn.arguments } } : { text: turn.text };
    const json = {
      candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 }],
      usageMetadata: {
        promptTokenCount: TOKENS.input,
        candidatesTokenCount: TOKENS.output,
        totalTokenCount: TOKENS.input + TOKENS.output,
      },
      modelVersion: model,
    };
    return streams ? { events: [{ data: json }] } : { json };
  },
  failed: (status) => ({
    status,
    json: {
      error: {
        code: status,
        message: WORDS[status] ?? "Try again later.",
        status: STATUSES[status] ?? "INTERNAL",
        ...(status === 429 && { details: [QUOTA] }),
      },
    },
  }),
};

const itemsOf = ({ role, parts }: z.infer<typeof contentSchema>): Item[] =>
  parts
    .filter(({ thought }) => thought !== true)
    .map(({ text, functionResponse }) =>
      functionResponse
        ? { by: "tool", text: JSON.stringify(functionResponse.response ?? "") }
        : { by: role === "user" ? "user" : "model", text: text ?? "" },
    );
