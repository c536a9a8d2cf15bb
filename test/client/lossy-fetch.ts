/**
 * A `fetch` to a real broker that loses answers when the test says so. The request always arrives: that is the harder
 * case.
 */

const lost = () =>
  new TypeError("fetch failed", { cause: Object.assign(new Error("reset"), { code: "ECONNRESET" }) });

/** The method and path, like `POST /v1/delegations`. */
export type Asked = (asked: string) => boolean;

/** Loses the first `times` answers that `which` selects, after the broker has executed the request. */
export function losingAnswers(which: Asked, times = 1): typeof fetch & { readonly lost: string[] } {
  const done: string[] = [];
  const flaky: typeof fetch = async (input, init) => {
    const asked = `${init?.method ?? "GET"} ${new URL(String(input)).pathname}`;
    const response = await fetch(input, init);
    if (done.length >= times || !which(asked)) return response;
    done.push(asked);
    await response.body?.cancel();
    throw lost();
  };
  return Object.assign(flaky, { lost: done });
}

/** Cuts every event stream after its first `frames` frames, in the middle of the next one. */
export function cuttingStreams(frames: number): typeof fetch & { readonly cuts: () => number } {
  let cuts = 0;
  const flaky: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
    let seen = 0;
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const text = new TextDecoder().decode(chunk);
        const starts = [...text.matchAll(/\ndata: /g)].map(({ index }) => index);
        const last = starts[frames - seen];
        seen += starts.length;
        if (last === undefined) return controller.enqueue(chunk);
        controller.enqueue(new TextEncoder().encode(text.slice(0, last + 20)));
        cuts += 1;
        controller.error(lost());
      },
    });
    return new Response(response.body?.pipeThrough(cut) ?? null, response);
  };
  return Object.assign(flaky, { cuts: () => cuts });
}
