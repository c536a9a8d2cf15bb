/**
 * The JSON-RPC binding, of 1.0 and 0.3 by the version that is asked for. Limit: envelopes and params are checked before
 * the SDK sees them, and errors are written here; it dispatches, decodes and encodes.
 */
import { LegacyJsonRpcTransportHandler } from "@a2a-js/sdk/compat/v0_3/server";
import { A2A_ERROR_CODE } from "@a2a-js/sdk/errors";
import { JsonRpcTransportHandler, ServerCallContext } from "@a2a-js/sdk/server";
import { z } from "zod";
import { parseBody } from "../../http/body.ts";
import type { MountedRequest } from "../../http/mount.ts";
import { json, type TextResponse } from "../../http/text-response.ts";
import type { Signer } from "../cards/signing.ts";
import { Scope } from "../context.ts";
import { ownInfo, rpcError, toFailure } from "../errors.ts";
import { activated } from "../extensions.ts";
import { BrokerA2AHandler } from "../handler.ts";
import { checkParams, isMethod } from "../params.ts";
import { lastV03 } from "../sdk.ts";
import { checkParamsV03, isMethodV03 } from "../v03/params.ts";
import { type Version, versionOf } from "../version.ts";
import { streamed } from "./stream.ts";

type Id = string | number | null;
type Json = Record<string, unknown>;

const envelopeSchema = z.looseObject({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.int(), z.null()]).optional(),
  method: z.string().min(1),
  params: z.unknown().optional(),
});
const idSchema = z.object({ id: z.union([z.string(), z.int()]) });

/** The request's id, well-formed, so that an answer can repeat it. */
const idOf = (body: unknown): Id => {
  const id = idSchema.safeParse(body).data?.id ?? null;
  return typeof id === "string" ? id.toWellFormed() : id;
};

/** An error of JSON-RPC itself. */
class EnvelopeError extends Error {
  override readonly name = "EnvelopeError";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }

  get reason(): string {
    return this.code === A2A_ERROR_CODE.METHOD_NOT_FOUND ? "METHOD_NOT_FOUND" : "INVALID_REQUEST";
  }
}

const resultSchema = z.looseObject({ result: z.looseObject({}) });

async function* marked(answers: AsyncGenerator<object>): AsyncGenerator<object> {
  for await (const answer of answers) {
    const { data } = resultSchema.safeParse(answer);
    yield data ? { ...data, result: lastV03(data.result) } : answer;
  }
}

const isStream = (answer: object): answer is AsyncGenerator<object> => Symbol.asyncIterator in answer;
/** A status of HTTP's own, where it tells those between something; else the envelope says it all. */
const httpOf = (http: number): number => ([401, 403, 413, 429].includes(http) || http >= 500 ? http : 200);

export async function rpc(
  request: MountedRequest,
  signer: Signer | null,
  log: Parameters<typeof toFailure>[1],
): Promise<TextResponse | Response> {
  let id: Id = null;
  const refuse = (error: unknown): { body: Json; http: number; headers: Record<string, string> } => {
    const { requestId } = request;
    const failed = error instanceof EnvelopeError ? null : toFailure(error, log, requestId);
    const shown =
      error instanceof EnvelopeError
        ? {
            code: error.code,
            message: error.message,
            data: [ownInfo(error.reason, { request_id: requestId })],
          }
        : failed && rpcError(failed);
    return {
      body: { jsonrpc: "2.0", id, error: shown },
      http: httpOf(failed?.http ?? 200),
      headers: { ...failed?.headers },
    };
  };
  try {
    const { request: call, bytes } = await request.authenticate();
    const body = parseBody(bytes, request.header("content-type"), {
      parsed: (whole) => {
        id = idOf(whole);
      },
    });
    const version = versionOf(request.header("a2a-version"), request.query["A2A-Version"]?.[0]);
    const { method, params } = openEnvelope(body, version);
    const scope = new Scope(call, request.params.agent, signer, version === "1.0" ? params : undefined);
    const answer = await dispatch(scope, version, { jsonrpc: "2.0", id, method, params });
    const headers = activated(request.header, version);
    if (isStream(answer)) {
      return await streamed(scope, version === "0.3" ? marked(answer) : answer, headers, (error) => ({
        json: JSON.stringify(refuse(error).body),
      }));
    }
    if (scope.failure) throw scope.failure.error;
    // Everything that can be said of a request has been said by now.
    if ("error" in answer) throw new Error(JSON.stringify(answer.error));
    return json(200, answer, headers);
  } catch (error) {
    const { body, http, headers } = refuse(error);
    return json(http, body, headers);
  }
}

function openEnvelope(body: unknown, version: Version): { method: string; params: unknown } {
  const envelope = envelopeSchema.safeParse(body);
  if (!envelope.success) {
    const what = Array.isArray(body) ? "Batches are not taken." : "This is no JSON-RPC 2.0 request.";
    throw new EnvelopeError(A2A_ERROR_CODE.INVALID_REQUEST, what);
  }
  const { method, params } = envelope.data;
  if (version === "1.0") {
    if (!isMethod(method))
      throw unknown(isMethodV03(method) ? "It is one of 0.3; leave A2A-Version away." : "");
    return {
      method,
      params: checkParams(method, params ?? (method === "GetExtendedAgentCard" ? {} : params)),
    };
  }
  if (!isMethodV03(method)) throw unknown(isMethod(method) ? "It is one of 1.0; send A2A-Version: 1.0." : "");
  return { method, params: checkParamsV03(method, params) };
}

const unknown = (hint: string): EnvelopeError =>
  new EnvelopeError(A2A_ERROR_CODE.METHOD_NOT_FOUND, `There is no such method. ${hint}`.trim());

function dispatch(scope: Scope, version: Version, envelope: Json): Promise<object> {
  const handler = new BrokerA2AHandler(scope);
  const context = new ServerCallContext({ requestedVersion: version });
  return version === "1.0"
    ? new JsonRpcTransportHandler(handler).handle(envelope, context)
    : new LegacyJsonRpcTransportHandler(handler).handle(envelope, context);
}
