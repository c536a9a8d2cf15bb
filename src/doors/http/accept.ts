/** The media types that a client accepts. Limit: of wildcards only the type itself is compared; a quality of 0 refuses it. */

/** The highest quality of the entries whose type matches: 0 for refused, undefined if none matches. */
export function qualityOf(accept: string, type: RegExp): number | undefined {
  const found = accept.split(",").flatMap((entry) => {
    const [name = "", ...parameters] = entry.split(";").map((one) => one.trim());
    if (!type.test(name)) return [];
    const quality = parameters.find((one) => /^q=/i.test(one))?.slice(2);
    const value = quality === undefined ? 1 : Number(quality);
    return [Number.isNaN(value) ? 1 : value];
  });
  return found.length === 0 ? undefined : Math.max(...found);
}

/**
 * Whether events are sent as a stream: only to a client that asks for it, as `EventSource` does. Generated clients send no
 * type or any, and parse the answer as JSON.
 */
export function prefersStream(accept: string): boolean {
  const stream = qualityOf(accept, /^text\/event-stream$/i);
  const json = qualityOf(accept, /json$/i);
  return stream === undefined ? json === 0 : stream > 0 && stream >= (json ?? 0);
}
