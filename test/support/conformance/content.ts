/**
 * The conformance kit's tools that are unrelated to delegation: content of each kind, progress, log lines, questions to
 * a client. Names and texts are the kit's.
 */

import { setTimeout as sleep } from "node:timers/promises";
import {
  CLIENT_CAPABILITIES_META_KEY,
  MissingRequiredClientCapabilityError,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";
import type { TestTool } from "../../../src/doors/mcp/server.ts";

export const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

type Answer = Awaited<ReturnType<TestTool["run"]>>;
type Schema = TestTool["listed"]["inputSchema"];

export const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });

/** A tool of the kit, described by its name. */
export function fixture(
  name: string,
  run: TestTool["run"],
  inputSchema: Schema = { type: "object" },
): TestTool {
  return { listed: { name, description: `Fixture ${name} of the conformance kit`, inputSchema }, run };
}

const answers = (name: string, answer: Answer) => fixture(name, async () => answer);

const envelope = z.looseObject({
  [CLIENT_CAPABILITIES_META_KEY]: z.record(z.string(), z.unknown()),
});

/** The capabilities in a request of 2026-07-28. */
export function declared(server: ServerContext): Readonly<Record<string, unknown>> {
  return envelope.safeParse(server.mcpReq.envelope).data?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
}

const argument = (args: Readonly<Record<string, unknown>>, name: string) => String(args[name] ?? "");

const PAUSE_MS = 50;

/** Asks the user of a client with a session; returns the answer as text. */
async function elicit(server: ServerContext, message: string, properties: object, required?: string[]) {
  const requestedSchema = { type: "object", properties, ...(required && { required }) };
  const { action, content } = await server.mcpReq.send(
    { method: "elicitation/create", params: { message, requestedSchema } },
    z.looseObject({ action: z.string(), content: z.unknown() }),
  );
  return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`);
}

const string = { type: "string" };

export const contentTools: readonly TestTool[] = [
  answers("test_simple_text", text("This is a simple text response for testing.")),
  answers("test_image_content", { content: [{ type: "image", data: PNG, mimeType: "image/png" }] }),
  answers("test_audio_content", { content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }] }),
  answers("test_embedded_resource", {
    content: [
      {
        type: "resource",
        resource: {
          uri: "test://embedded-resource",
          mimeType: "text/plain",
          text: "This is an embedded resource content.",
        },
      },
    ],
  }),
  answers("test_multiple_content_types", {
    content: [
      { type: "text", text: "Multiple content types test:" },
      { type: "image", data: PNG, mimeType: "image/png" },
      {
        type: "resource",
        resource: {
          uri: "test://mixed-content-resource",
          mimeType: "application/json",
          text: '{"test":"data","value":123}',
        },
      },
    ],
  }),
  answers("test_error_handling", {
    ...text("This tool intentionally returns an error for testing"),
    isError: true,
  }),
  fixture("test_tool_with_logging", async (_args, _context, server) => {
    await server.mcpReq.log("info", "Tool execution started");
    await sleep(PAUSE_MS);
    await server.mcpReq.log("info", "Tool processing data");
    await sleep(PAUSE_MS);
    await server.mcpReq.log("info", "Tool execution completed");
    return text("Logged three times.");
  }),
  fixture("test_logging_tool", async (_args, _context, server) => {
    await server.mcpReq.log("info", "A line that only who asks for it gets");
    return text("Logged.");
  }),
  fixture("test_tool_with_progress", async (_args, _context, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progress > 0) await sleep(PAUSE_MS);
      if (progressToken === undefined) continue;
      const params = { progressToken, progress, total: 100 };
      await mcpReq.notify({ method: "notifications/progress", params });
    }
    return text("Went from 0 to 100.");
  }),
  fixture("test_sampling", async (args, _context, server) => {
    const said = { role: "user", content: { type: "text", text: argument(args, "prompt") } };
    const { content } = await server.mcpReq.send(
      { method: "sampling/createMessage", params: { messages: [said], maxTokens: 100 } },
      z.looseObject({ content: z.looseObject({ text: z.string() }) }),
    );
    return text(`LLM response: ${content.text}`);
  }),
  fixture("test_elicitation", (args, _context, server) =>
    elicit(server, argument(args, "message"), { username: string, email: string }, ["username", "email"]),
  ),
  fixture("test_elicitation_sep1034_defaults", (_args, _context, server) =>
    elicit(server, "Defaults of each primitive type", {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    }),
  ),
  fixture("test_elicitation_sep1330_enums", (_args, _context, server) =>
    elicit(server, "Choices of each form", {
      untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
      titledSingle: { type: "string", oneOf: titled("value", "Option") },
      legacyEnum: {
        type: "string",
        enum: ["opt1", "opt2", "opt3"],
        enumNames: ["Option One", "Option Two", "Option Three"],
      },
      untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
      titledMulti: { type: "array", items: { anyOf: titled("value", "Choice") } },
    }),
  ),
  fixture("test_missing_capability", async (_args, _context, server) => {
    if (declared(server).sampling !== undefined) return text("Sampling was declared.");
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
  }),
  fixture("json_schema_2020_12_tool", async () => text("Its schema is what matters."), {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: {
      address: {
        $anchor: "addressDef",
        type: "object",
        properties: { street: string, city: string },
      },
    },
    properties: {
      name: string,
      address: { $ref: "#/$defs/address" },
      contactMethod: { type: "string", enum: ["phone", "email"] },
      phone: string,
      email: string,
    },
    allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
    if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { required: ["phone"] },
    else: { required: ["email"] },
    additionalProperties: false,
  }),
];

function titled(value: string, title: string) {
  return ["First", "Second", "Third"].map((which, i) => ({
    const: `${value}${i + 1}`,
    title: `${which} ${title}`,
  }));
}
