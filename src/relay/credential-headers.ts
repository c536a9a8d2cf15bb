/** The HTTP headers that carry credentials to an A2A server. */
import type { Credentials } from "../schema/credentials.ts";

export function credentialHeaders(credentials: Credentials): Record<string, string> {
  switch (credentials.scheme) {
    case "bearer":
      return { authorization: `Bearer ${credentials.token}` };
    case "basic": {
      const { username, password } = credentials;
      return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}` };
    }
    case "headers":
      return { ...credentials.headers };
  }
}
