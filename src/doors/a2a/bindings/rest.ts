/** The HTTP+JSON binding in 1.0 and 0.3. Limit: no tenants in paths; each agent has its own path. */
import { A2A_CONTENT_TYPE } from "@a2a-js/sdk";
import { parseAccept } from "hono/utils/accept";
import { ErrandError } from "../../../schema/errors.ts";
import { TYPE_NAMES, wrongType } from "../../../schema/wording.ts";
import type { Log } from "../../../telemetry/log.ts";
import { parseBody } from "../../http/body.ts";
import type { EventStream } from "../../http/event-stream.ts";
import { methodNotAllowed, withImplied } from "../../http/methods.ts";
import type { MountedRequest } from "../../http/mount.ts";
import { json, noContent, type TextResponse } from "../../http/text-response.ts";
import type { CardSigner } from "../cards/signing.ts";
import { A2AContext } from "../context.ts";
import { restError, restErrorV03, toFailure } from "../errors.ts";
import { checkParams } from "../params.ts";
import { withPathMembers } from "../protojson.ts";
import { activatedExtensions, errorVersion, requireVersion, type Version } from "../service-parameters.ts";
import { runOperationV03 } from "../v03/rest-operations.ts";
import { runOperation } from "./rest-operations.ts";
import { findOperation, methodsAt, type Operation } from "./rest-routes.ts";
import { streamResponse } from "./stream.ts";

export async function rest(
  incoming: MountedRequest,
  signer: CardSigner | null,
  log: Log,
): Promise<TextResponse | EventStream> {
  const versionInputs = [incoming.header("a2a-version"), incoming.query["A2A-Version"]?.[0]] as const;
  const version: Version = errorVersion(...versionInputs);
  const refuse = (error: unknown) => {
    const failure = toFailure(error, log, incoming.requestId);
    return { failure, body: version === "1.0" ? restError(failure) : restErrorV03(failure) };
  };
  const extensions = activatedExtensions(incoming.header);
  try {
    const { request, bytes } = await incoming.authenticate();
    requireVersion(...versionInputs);
    const verb = incoming.method === "HEAD" ? "GET" : incoming.method;
    const operation = findOperation(verb, incoming.rest, incoming.query, version);
    if (!operation) throw routeNotFound(incoming, version);
    const body = parseBody(bytes, incoming.header("content-type"));
    const params = version === "1.0" ? paramsOf(operation, body) : body;
    const context = new A2AContext(
      request,
      incoming.params.agent,
      signer,
      version === "1.0" ? params : undefined,
    );
    const result =
      version === "1.0"
        ? await withThrown(context, runOperation(context, operation.method, params))
        : await withThrown(context, runOperationV03(context, operation, body));
    if (result.kind === "stream") {
      return await streamResponse(context, result.events, extensions, (error) => ({
        type: "error",
        json: JSON.stringify(refuse(error).body),
      }));
    }
    if (result.status === 204) return noContent(extensions);
    const type = version === "1.0" ? resultType(incoming) : "application/json";
    return json(result.status, result.body, { "content-type": type, ...extensions });
  } catch (error) {
    const { failure, body } = refuse(error);
    const type = version === "1.0" ? errorType(incoming) : "application/json";
    return json(failure.http, body, { "content-type": type, ...extensions, ...failure.headers });
  }
}

/** Throws our handler's own error instead of the SDK's rewritten one. */
async function withThrown<T>(context: A2AContext, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw context.thrown ? context.thrown.error : error;
  }
}

function paramsOf({ method, params }: Operation, body: unknown): unknown {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new ErrandError("invalid_request", "The body must be an object.", {
      details: { issues: [{ path: "", reason: wrongType([TYPE_NAMES.object], body) }] },
    });
  return checkParams(method, withPathMembers({ ...body }, params));
}

function routeNotFound({ method, rest: path }: MountedRequest, version: Version): ErrandError {
  const allow = withImplied(methodsAt(path, [version]));
  if (allow.length > 0) return methodNotAllowed(method, path, allow);
  const hint =
    version === "0.3" && !path.startsWith("v1/")
      ? "Without the A2A-Version header the version is 0.3. Send A2A-Version: 1.0."
      : "Check the method and path against the agent's card and the A2A specification.";
  return new ErrandError("not_found", `There is no ${method} ${path} here.`, { recovery: hint });
}

/** The media type of an HTTP+JSON response: plain JSON or A2A's own. */
const PLAIN = "application/json";
type Headers = Pick<MountedRequest, "header">;

/** The media type that the request prefers; undefined if it accepts neither. */
function accepted({ header }: Headers): string | undefined {
  const ranges = parseAccept(header("accept") ?? "").filter(({ q }) => q > 0);
  return ranges
    .sort((a, b) => b.q - a.q)
    .map(({ type }) => type.toLowerCase())
    .find((type) => type === PLAIN || type === A2A_CONTENT_TYPE);
}

/** The media type of a result. Without a preference, it is that of the request's body. */
function resultType(incoming: Headers): string {
  const isPlain = (incoming.header("content-type") ?? "").toLowerCase().startsWith(PLAIN);
  return accepted(incoming) ?? (isPlain ? PLAIN : A2A_CONTENT_TYPE);
}

/** The media type of an error. The default is plain JSON, because many clients and proxies read no other. */
const errorType = (incoming: Headers): string => accepted(incoming) ?? PLAIN;
