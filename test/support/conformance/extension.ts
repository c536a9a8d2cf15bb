/**
 * The server features that the conformance kit expects, for `startBroker({ mcpExtension })`: tools, prompts, resources,
 * completion and logging.
 */
import { inputRequired, ProtocolError, type Server } from "@modelcontextprotocol/server";
import type { Era } from "../../../src/doors/mcp/context.ts";
import type { McpTestExtension } from "../../../src/doors/mcp/server.ts";
import { contentTools, PNG } from "./content.ts";
import { form, inputTools } from "./input.ts";
import { taskTools } from "./tasks.ts";

const INVALID_PARAMS = -32602;
const TEMPLATE = /^test:\/\/template\/([^/]+)\/data$/;

const said = (words: string) => ({
  role: "user" as const,
  content: { type: "text" as const, text: words },
});
const argument = (name: string) => ({ name, description: `The ${name}`, required: true });

const PROMPTS = [
  { name: "test_simple_prompt", arguments: [] },
  { name: "test_prompt_with_arguments", arguments: [argument("arg1"), argument("arg2")] },
  { name: "test_prompt_with_embedded_resource", arguments: [argument("resourceUri")] },
  { name: "test_prompt_with_image", arguments: [] },
  { name: "test_input_required_result_prompt", arguments: [] },
].map((prompt) => ({ ...prompt, description: `Fixture ${prompt.name} of the conformance kit` }));

const RESOURCES = [
  {
    uri: "test://static-text",
    mimeType: "text/plain",
    text: "This is the content of the static text resource.",
  },
  { uri: "test://static-binary", mimeType: "image/png", blob: PNG },
  { uri: "test://watched-resource", mimeType: "text/plain", text: "Nothing changes here." },
];

function prompts(server: Server): void {
  server.setRequestHandler("prompts/list", () => ({ prompts: PROMPTS }));
  server.setRequestHandler("prompts/get", ({ params }, { mcpReq }) => {
    const args = params.arguments ?? {};
    switch (params.name) {
      case "test_simple_prompt":
        return { messages: [said("This is a simple prompt for testing.")] };
      case "test_prompt_with_arguments":
        return { messages: [said(`Prompt with arguments: arg1='${args.arg1}', arg2='${args.arg2}'`)] };
      case "test_prompt_with_embedded_resource": {
        const uri = String(args.resourceUri);
        const resource = { uri, mimeType: "text/plain", text: "Embedded resource content for testing." };
        return {
          messages: [
            { role: "user", content: { type: "resource", resource } },
            said("Please process the embedded resource above."),
          ],
        };
      }
      case "test_prompt_with_image":
        return {
          messages: [
            { role: "user", content: { type: "image", data: PNG, mimeType: "image/png" } },
            said("Please analyze the image above."),
          ],
        };
      case "test_input_required_result_prompt":
        if (mcpReq.inputResponses) return { messages: [said("The prompt in its context.")] };
        return inputRequired({
          inputRequests: { user_context: form("What context should the prompt use?", "context") },
        });
      default:
        throw new ProtocolError(INVALID_PARAMS, "There is no such prompt.");
    }
  });
}

function resources(server: Server, era: Era): void {
  server.setRequestHandler("resources/list", () => ({
    resources: RESOURCES.map(({ uri, mimeType }) => ({ uri, mimeType, name: uri, description: "A fixture" })),
  }));
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [
      { uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" },
    ],
  }));
  server.setRequestHandler("resources/read", ({ params: { uri } }) => {
    const found = RESOURCES.find((resource) => resource.uri === uri);
    if (found) return { contents: [found] };
    const [, id] = TEMPLATE.exec(uri) ?? [];
    if (id === undefined) throw new ProtocolError(INVALID_PARAMS, "Resource not found", { uri });
    const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
    return { contents: [{ uri, mimeType: "application/json", text }] };
  });
  if (era === "modern") return;
  server.setRequestHandler("resources/subscribe", () => ({}));
  server.setRequestHandler("resources/unsubscribe", () => ({}));
}

export const conformance: McpTestExtension = {
  tools: [...contentTools, ...inputTools, ...taskTools],
  extend(server, era) {
    server.registerCapabilities({
      prompts: {},
      resources: era === "legacy" ? { subscribe: true } : {},
      completions: {},
      logging: {},
    });
    prompts(server);
    resources(server, era);
    server.setRequestHandler("completion/complete", () => ({ completion: { values: ["test"], total: 1 } }));
  },
};
