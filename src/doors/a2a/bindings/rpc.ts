/**
 * The JSON-RPC binding in 1.0 and 0.3. This file checks envelopes and params and writes errors; the SDK dispatches,
 * decodes and encodes.
 */
import { LegacyJsonRpcTransportHandler } from "@a2a-js/sdk/compat/v0_3/server";
import { A2A_ERROR_CODE } from "@a2a-js/sdk/errors";
import { JsonRpcTransportHandler, ServerCallContext } from "@a2a-js/sdk/server";
import * as z from "zod";
import { ErrandError } from "../../../schema/errors.ts";
import { isWrappedId, unwrapIds } from "../../../util/rpc-ids.ts";
import { parseBody } from "../../http/body.ts";
import { type EventStream, singleEvent } from "../../http/event-stream.ts";
import type { MountedRequest } from "../../http/mount.ts";
import { jsonText, type TextResponse } from "../../http/text-response.ts";
import type { CardSigner } from "../cards/signing.ts";
import { A2AContext } from "../context.ts";
import { errorInfo, rpcError, toFailure } from "../errors.ts";
import { BrokerA2AHandler } from "../handler.ts";
import { checkParams, isMethod } from "../params.ts";
import { markFinalV03 } from "../sdk.ts";
import { activatedExtensions, requireVersion, type Version } from "../service-parameters.ts";
import { checkParamsV03, isMethodV03 } from "../v03/params.ts";
import { streamResponse } from "./stream.ts";

type Id = string | number | null;
type Json = Record<string, unknown>;

const envelopeSchema = z.looseObject({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.int(), z.null()]).optional(),
  method: z.string().min(1),
  params: z.unknown().optional(),
});
const idSchema = z.object({ id: z.union([z.string(), z.int()]) });

const streamV03Schema = z.object({ method: z.enum(["message/stream", "tasks/resubscribe"]) });

/** The request's id, as well-formed Unicode, so that the response can repeat it. */
const idOf = (body: unknown): Id => {
  const id = idSchema.safeParse(body).data?.id ?? null;
  return typeof id === "string" ? id.toWellFormed() : id;
};

/** The text of a response, with the id that the request has. */
const textOf = (response: object, id: Id): string => {
  const text = JSON.stringify(response);
  return isWrappedId(id) ? unwrapIds(text) : text;
};

/** An error in the JSON-RPC envelope. */
class EnvelopeError extends Error {
  override readonly name = "EnvelopeError";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }

  get isMethod(): boolean {
    return this.code === A2A_ERROR_CODE.METHOD_NOT_FOUND;
  }

  get reason(): string {
    return this.isMethod ? "METHOD_NOT_FOUND" : "INVALID_REQUEST";
  }

  get recovery(): string {
    return this.isMethod
      ? "Send a method of the A2A specification, and its version in the A2A-Version header (1.0 or 0.3)."
      : 'Send one object such as {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}.';
  }
}

const resultSchema = z.looseObject({ result: z.looseObject({}) });

async function* withFinalMark(responses: AsyncGenerator<object>): AsyncGenerator<object> {
  for await (const response of responses) {
    const { data } = resultSchema.safeParse(response);
    yield data ? { ...data, result: markFinalV03(data.result) } : response;
  }
}

const isStream = (response: object): response is AsyncGenerator<object> => Symbol.asyncIterator in response;

/** The error's own status if proxies and clients act on it; else 200, because the envelope has the error. */
const httpStatusFor = (http: number): number =>
  [401, 403, 413, 415, 429].includes(http) || http >= 500 ? http : 200;

export async function rpc(
  incoming: MountedRequest,
  signer: CardSigner | null,
  log: Parameters<typeof toFailure>[1],
): Promise<TextResponse | EventStream> {
  let id: Id = null;
  /** Clients of 0.3 read the error of a stream only from an event. */
  let expectsEvent = false;
  const extensions = activatedExtensions(incoming.header);
  const refuse = (error: unknown): { body: Json; http: number; headers: Record<string, string> } => {
    const { requestId } = incoming;
    const failed = error instanceof EnvelopeError ? null : toFailure(error, log, requestId);
    const shown =
      error instanceof EnvelopeError
        ? {
            code: error.code,
            message: error.message,
            data: [errorInfo(error.reason, { recovery: error.recovery, requestId })],
          }
        : failed && rpcError(failed);
    return {
      body: { jsonrpc: "2.0", id, error: shown },
      http: httpStatusFor(failed?.http ?? 200),
      headers: { ...extensions, ...failed?.headers },
    };
  };
  try {
    const { request, bytes } = await incoming.authenticate();
    const body = parseBody(bytes, incoming.header("content-type"), {
      wrapsIds: true,
      parsed: (parsed) => {
        id = idOf(parsed);
      },
    });
    const version = requireVersion(incoming.header("a2a-version"), incoming.query["A2A-Version"]?.[0]);
    expectsEvent = version === "0.3" && streamV03Schema.safeParse(body).success;
    const { method, params } = parseEnvelope(body, version);
    requireNames(params);
    const context = new A2AContext(
      request,
      incoming.params.agent,
      signer,
      version === "1.0" ? params : undefined,
    );
    const response = await dispatch(context, version, { jsonrpc: "2.0", id, method, params });
    if (isStream(response)) {
      return await streamResponse(
        context,
        version === "0.3" ? withFinalMark(response) : response,
        extensions,
        (error) => ({ json: textOf(refuse(error).body, id) }),
        (event) => textOf(event, id),
      );
    }
    if (context.thrown) throw context.thrown.error;
    // Every expected error was handled before.
    if ("error" in response) throw new Error(JSON.stringify(response.error));
    return jsonText(200, textOf(response, id), extensions);
  } catch (error) {
    const { body, http, headers } = refuse(error);
    const text = textOf(body, id);
    if (expectsEvent && http === 200) return singleEvent({ json: text }, headers);
    return jsonText(http, text, headers);
  }
}

function parseEnvelope(body: unknown, version: Version): { method: string; params: unknown } {
  const envelope = envelopeSchema.safeParse(body);
  if (!envelope.success) {
    const what = Array.isArray(body)
      ? "JSON-RPC batches are not supported. Send one request at a time."
      : "The body is not a JSON-RPC 2.0 request.";
    throw new EnvelopeError(A2A_ERROR_CODE.INVALID_REQUEST, what);
  }
  const { method, params } = envelope.data;
  if (version === "1.0") {
    if (!isMethod(method))
      throw methodNotFound(isMethodV03(method) ? "It exists in 0.3: omit the A2A-Version header." : "");
    return {
      method,
      params: checkParams(method, params ?? (method === "GetExtendedAgentCard" ? {} : params)),
    };
  }
  if (!isMethodV03(method))
    throw methodNotFound(isMethod(method) ? "It exists in 1.0: send A2A-Version: 1.0." : "");
  return { method, params: checkParamsV03(method, params) };
}

const methodNotFound = (hint: string): EnvelopeError =>
  new EnvelopeError(A2A_ERROR_CODE.METHOD_NOT_FOUND, `There is no such method. ${hint}`.trim());

/** The SDK refuses such params after our checks, with an error that has no details. */
function requireNames(params: unknown): void {
  if (typeof params !== "object" || params === null || !Object.hasOwn(params, "")) return;
  throw new ErrandError("invalid_request", "params has a member without a name.", {
    details: { issues: [{ path: "params", reason: "remove the member with the empty name" }] },
  });
}

function dispatch(context: A2AContext, version: Version, envelope: Json): Promise<object> {
  const handler = new BrokerA2AHandler(context);
  const callContext = new ServerCallContext({ requestedVersion: version });
  return version === "1.0"
    ? new JsonRpcTransportHandler(handler).handle(envelope, callContext)
    : new LegacyJsonRpcTransportHandler(handler).handle(envelope, callContext);
}
