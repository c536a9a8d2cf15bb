/**
 * The HTTP+JSON binding, of 1.0 and 0.3 by the version that is asked for. Limit: no tenants in paths; an agent has a
 * path of its own.
 */
import { A2A_CONTENT_TYPE } from "@a2a-js/sdk";
import { ErrandError } from "../../../schema/errors.ts";
import type { Log } from "../../../telemetry/log.ts";
import { parseBody } from "../../http/body.ts";
import type { MountedRequest } from "../../http/mount.ts";
import { json, noContent, type TextResponse } from "../../http/text-response.ts";
import type { Signer } from "../cards/signing.ts";
import { Scope } from "../context.ts";
import { restError, restErrorV03, toFailure } from "../errors.ts";
import { activated } from "../extensions.ts";
import { checkParams } from "../params.ts";
import { operateV03 } from "../v03/rest-operations.ts";
import { formFor, type Version, versionOf } from "../version.ts";
import { operate } from "./rest-operations.ts";
import { type Operation, operationOf } from "./rest-routes.ts";
import { streamed } from "./stream.ts";

export async function rest(
  request: MountedRequest,
  signer: Signer | null,
  log: Log,
): Promise<TextResponse | Response> {
  const named = [request.header("a2a-version"), request.query["A2A-Version"]?.[0]] as const;
  const version: Version = formFor(...named);
  const refuse = (error: unknown) => {
    const failure = toFailure(error, log, request.requestId);
    return { failure, body: version === "1.0" ? restError(failure) : restErrorV03(failure) };
  };
  const typed = () => ({ "content-type": version === "1.0" ? mediaType(request) : "application/json" });
  try {
    const { request: call, bytes } = await request.authenticate();
    versionOf(...named);
    const verb = request.method === "HEAD" ? "GET" : request.method;
    const operation = operationOf(verb, request.rest, request.query, version);
    if (!operation) throw noRoute(request, version);
    const body = parseBody(bytes, request.header("content-type"));
    const params = version === "1.0" ? paramsOf(operation, body) : body;
    const scope = new Scope(call, request.params.agent, signer, version === "1.0" ? params : undefined);
    const headers = { ...typed(), ...activated(request.header, version) };
    const done =
      version === "1.0"
        ? await kept(scope, operate(scope, operation.method, params))
        : await kept(scope, operateV03(scope, operation, body));
    if (done.is === "stream") {
      const { "content-type": _json, ...others } = headers;
      return await streamed(scope, done.events, others, (error) => ({
        type: "error",
        json: JSON.stringify(refuse(error).body),
      }));
    }
    return done.status === 204 ? noContent() : json(done.status, done.body, headers);
  } catch (error) {
    const { failure, body } = refuse(error);
    return json(failure.http, body, { ...typed(), ...failure.headers });
  }
}

/** What our handler threw, instead of what the SDK makes of it. */
async function kept<T>(scope: Scope, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw scope.failure ? scope.failure.error : error;
  }
}

/** The path counts where the body says otherwise. */
function paramsOf({ method, params }: Operation, body: unknown): unknown {
  const said = typeof body === "object" && body !== null && !Array.isArray(body) ? body : null;
  if (!said) throw new ErrandError("invalid_request", "The body must be an object.");
  return checkParams(method, { ...said, ...params });
}

function noRoute({ method, rest: path }: MountedRequest, version: Version): ErrandError {
  const hint =
    version === "0.3" && !path.startsWith("v1/")
      ? "Without A2A-Version it is 0.3 that is spoken; send A2A-Version: 1.0."
      : "Check method and path against the agent's card and the A2A specification.";
  return new ErrandError("not_found", `There is no ${method} ${path} here.`, { recovery: hint });
}

/** As the caller writes it, or else as the protocol does. */
function mediaType(request: MountedRequest): string {
  const said = request.header("content-type") ?? request.header("accept") ?? "";
  return /application\/json/i.test(said) ? "application/json" : A2A_CONTENT_TYPE;
}
