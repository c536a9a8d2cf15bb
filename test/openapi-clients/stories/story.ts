/** What the stories share. */
declare const process: { readonly env: Readonly<Record<string, string | undefined>> };

const { ERRAND_URL: baseUrl = "", ERRAND_TOKEN: token = "" } = process.env;
export const settings = { baseUrl, token };

/** The value, which the broker has sent. */
export function checked<T>(value: T): NonNullable<T> {
  if (value === undefined || value === null) throw new Error("the broker refused the request");
  return value;
}

export const say = (what: string, value: unknown): void => console.log(`${what}: ${String(value)}`);
