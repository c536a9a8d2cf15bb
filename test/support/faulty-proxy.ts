/**
 * An HTTP proxy between an agent and a gateway that records calls and injects faults. A fault with a `code` is the
 * broker's own error, any other is somebody else's answer. Limit: it reads bodies whole in both directions, so it cannot
 * carry streams.
 */
import { createServer, request as httpRequest, type IncomingMessage } from "node:http";
import { onTestFinished } from "vitest";

// Untyped: each test states what it expects on the wire.
type Json = ReturnType<typeof JSON.parse>;

export interface RecordedCall {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Json;
  /** Milliseconds by the monotonic clock. */
  readonly askedAt: number;
  /** The status that the client received; absent while it waits, and when it was cut. */
  status?: number;
  answer?: Json;
  answeredAt?: number;
  /** True if the client left before the answer. */
  left?: true;
}

/**
 * `cut`: the call never arrives · `deaf`: it arrives, its answer is cut · `hang`: it never arrives and gets no
 * answer.
 */
type Fault =
  | "cut"
  | "deaf"
  | "hang"
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: Json };

export interface FaultyProxy {
  readonly url: string;
  readonly calls: RecordedCall[];
  /** The calls whose path ends with this text, in order. */
  readonly to: (ending: string) => RecordedCall[];
  /** Cuts what waits at the gateway. */
  readonly cutAll: () => void;
  /** Chooses the fault of each call. */
  fault: (call: RecordedCall) => Fault | undefined;
  /** Called before each answer is passed on. */
  answering: (call: RecordedCall, answer: Json) => Promise<Json>;
}

export async function startFaultyProxy(gateway: string): Promise<FaultyProxy> {
  const calls: RecordedCall[] = [];
  const broker = (await fetch(`${gateway}/healthz`)).headers.get("errand-broker") ?? "";
  const server = createServer((incoming, outgoing) => {
    const take = async (text: string) => {
      const path = incoming.url ?? "";
      const body = text === "" ? undefined : JSON.parse(text);
      const call: RecordedCall = { path, headers: incoming.headers, body, askedAt: performance.now() };
      calls.push(call);
      const gone = new AbortController();
      outgoing.once("close", () => {
        if (!outgoing.writableEnded) call.left = true;
        gone.abort();
      });
      const tell = (status: number, headers: Record<string, string>, answer: Json) => {
        call.status = status;
        call.answer = answer;
        call.answeredAt = performance.now();
        outgoing.writeHead(status, { "content-type": "application/json", ...headers });
        outgoing.end(JSON.stringify(answer));
      };
      const fault = relay.fault(call);
      if (fault === "hang") return;
      if (fault === "cut") return outgoing.destroy();
      if (typeof fault === "object") {
        const { status, headers = {}, body: answer = {} } = fault;
        return tell(status, headers, "code" in answer ? { broker_id: broker, ...answer } : answer);
      }
      try {
        const { status, headers, answer } = await pass(gateway, broker, incoming, text, gone.signal);
        if (fault === "deaf") return outgoing.destroy();
        tell(status, headers, await relay.answering(call, answer));
      } catch {
        outgoing.destroy();
      }
    };
    // A client that is killed in the middle of its request asked nothing.
    void bodyOf(incoming).then(take, () => outgoing.destroy());
  });
  const relay: FaultyProxy = {
    url: "",
    calls,
    cutAll: () => server.closeAllConnections(),
    to: (ending) => calls.filter(({ path }) => path.endsWith(ending)),
    fault: () => undefined,
    answering: async (_call, answer) => answer,
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return Object.assign(relay, { url: `http://127.0.0.1:${port}` });
}

async function bodyOf(stream: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function pass(
  gateway: string,
  broker: string,
  { method, url, headers }: IncomingMessage,
  body: string,
  signal: AbortSignal,
) {
  return new Promise<{ status: number; headers: Record<string, string>; answer: Json }>((resolve, reject) => {
    const { host: _host, ...kept } = headers;
    const onward = httpRequest(`${gateway}${url}`, { method, headers: kept, agent: false, signal });
    onward.once("error", reject);
    onward.once("response", (response) => {
      bodyOf(response).then((text) => {
        const retry = response.headers["retry-after"];
        resolve({
          status: response.statusCode ?? 0,
          headers: { "errand-broker": broker, ...(retry !== undefined && { "retry-after": retry }) },
          answer: JSON.parse(text),
        });
      }, reject);
    });
    onward.end(body);
  });
}
