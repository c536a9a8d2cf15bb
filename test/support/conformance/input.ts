/**
 * The conformance kit's tools that answer with an input request (2026-07-28).
 * Limit: names, keys and texts are the kit's.
 */
import { createHmac, randomBytes } from "node:crypto";
import { acceptedContent, inputRequired, inputResponse, ProtocolError } from "@modelcontextprotocol/server";
import type { TestTool } from "../../../src/doors/mcp/server.ts";
import { declared, fixture, text } from "./content.ts";

const INVALID_PARAMS = -32602;
const key = randomBytes(32);
const seal = (state: string) => `${state}.${createHmac("sha256", key).update(state).digest("hex")}`;

/** The sealed state; a forged one is refused. */
function unseal(sealed: string): string {
  const [state = ""] = sealed.split(".");
  if (seal(state) !== sealed) throw new ProtocolError(INVALID_PARAMS, "The requestState is not ours.");
  return state;
}

export function form(message: string, name: string, type: "string" | "boolean" = "string") {
  return inputRequired.elicit({
    mode: "form",
    message,
    requestedSchema: {
      type: "object",
      properties: { [name]: type === "string" ? { type } : { type } },
      required: [name],
    },
  });
}

function sampled(words: string, maxTokens: number) {
  const messages = [{ role: "user" as const, content: { type: "text" as const, text: words } }];
  return inputRequired.createMessage({ messages, maxTokens });
}

const askName = () => form("What is your name?", "name");

/** The text of a filled-in form. */
export function filled(responses: Readonly<Record<string, unknown>> | undefined, key: string, name: string) {
  const value = acceptedContent(responses, key)?.[name];
  return typeof value === "string" ? value : undefined;
}

export const inputTools: readonly TestTool[] = [
  fixture("test_input_required_result_elicitation", async (_args, { inputResponses }) => {
    const name = filled(inputResponses, "user_name", "name");
    if (name === undefined) return inputRequired({ inputRequests: { user_name: askName() } });
    return text(`Hello, ${name}!`);
  }),
  fixture("test_input_required_result_sampling", async (_args, { inputResponses }) => {
    const answer = inputResponse(inputResponses, "capital_question");
    if (answer.kind === "sampling") return text(JSON.stringify(answer));
    const capital_question = sampled("What is the capital of France?", 100);
    return inputRequired({ inputRequests: { capital_question } });
  }),
  fixture("test_input_required_result_list_roots", async (_args, { inputResponses }) => {
    const answer = inputResponse(inputResponses, "client_roots");
    if (answer.kind === "roots") return text(JSON.stringify(answer));
    return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
  }),
  fixture("test_input_required_result_request_state", async (_args, { inputResponses, requestState }) => {
    if (requestState !== undefined && acceptedContent(inputResponses, "confirm"))
      return text(`state-ok: ${unseal(requestState)}`);
    const confirm = form("Please confirm", "ok", "boolean");
    return inputRequired({ inputRequests: { confirm }, requestState: seal("asked") });
  }),
  fixture("test_input_required_result_multiple_inputs", async (_args, { inputResponses, requestState }) => {
    const keys = ["user_name", "greeting", "client_roots"];
    if (
      requestState !== undefined &&
      keys.every((key) => inputResponse(inputResponses, key).kind !== "missing")
    ) {
      return text(`All three came, for ${unseal(requestState)}.`);
    }
    const inputRequests = {
      user_name: askName(),
      greeting: sampled("Generate a greeting", 50),
      client_roots: inputRequired.listRoots(),
    };
    return inputRequired({ inputRequests, requestState: seal("three") });
  }),
  fixture("test_input_required_result_multi_round", async (_args, { inputResponses, requestState }) => {
    const round = requestState === undefined ? "" : unseal(requestState);
    const name = filled(inputResponses, "step1", "name");
    if (round === "one" && name !== undefined) {
      const step2 = form("Step 2: What is your favorite color?", "color");
      return inputRequired({ inputRequests: { step2 }, requestState: seal("two") });
    }
    const color = filled(inputResponses, "step2", "color");
    if (round === "two" && color !== undefined) return text(`The color is ${color}.`);
    const step1 = form("Step 1: What is your name?", "name");
    return inputRequired({ inputRequests: { step1 }, requestState: seal("one") });
  }),
  fixture("test_input_required_result_tampered_state", async (_args, { requestState }) => {
    if (requestState !== undefined) return text(`The state is ours: ${unseal(requestState)}`);
    const confirm = form("Please confirm", "ok", "boolean");
    return inputRequired({ inputRequests: { confirm }, requestState: seal("ours") });
  }),
  fixture("test_input_required_result_capabilities", async (_args, { inputResponses }, server) => {
    if (inputResponses !== undefined) return text("Answered.");
    const { sampling, elicitation } = declared(server);
    return inputRequired({
      inputRequests: {
        ...(sampling !== undefined && { sampled: sampled("Say something", 20) }),
        ...(elicitation !== undefined && { asked: askName() }),
      },
    });
  }),
  fixture("test_streaming_elicitation", async (_args, { inputResponses }) =>
    inputResponses === undefined
      ? inputRequired({ inputRequests: { user_name: askName() } })
      : text("Answered."),
  ),
];
