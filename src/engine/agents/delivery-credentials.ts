/**
 * The credentials of a push agent for its A2A server. They are sent to one origin only. The fields are
 * private, so neither a log nor JSON shows them.
 */
import { isDeepStrictEqual } from "node:util";
import { credentialHeaders } from "../../relay/credential-headers.ts";
import type { Delivery } from "../../schema/agent.ts";
import { type Credentials, credentialsSchema } from "../../schema/credentials.ts";

/** The fields of the agent's hash; empty text where there are none. */
export interface CredentialFields {
  readonly credentials: string;
  /** The origin that they are for. A field of its own, so that lists need not read the secret. */
  readonly credentials_for: string;
}

export class DeliveryCredentials {
  readonly #origin: string;
  readonly #credentials: Credentials;

  /** `url` is the server's. */
  constructor(url: string, credentials: Credentials) {
    this.#origin = new URL(url).origin;
    this.#credentials = credentials;
  }

  /** Null when none are stored. */
  static read({
    credentials = "",
    credentials_for = "",
  }: Partial<CredentialFields>): DeliveryCredentials | null {
    if (credentials === "" || credentials_for === "") return null;
    return new DeliveryCredentials(credentials_for, credentialsSchema.parse(JSON.parse(credentials)));
  }

  /** To be stored, and shown to nobody. */
  toFields(): CredentialFields {
    return { credentials: JSON.stringify(this.#credentials), credentials_for: this.#origin };
  }

  /** Whether this delivery goes to the origin of the credentials. */
  areFor(delivery: Delivery): boolean {
    return areFor(this.#origin, delivery);
  }

  equals(other: DeliveryCredentials | null): boolean {
    return (
      other !== null &&
      this.#origin === other.#origin &&
      isDeepStrictEqual(this.#credentials, other.#credentials)
    );
  }

  /** To be sent to the origin alone. */
  toHeaders(): Record<string, string> {
    return credentialHeaders(this.#credentials);
  }
}

export function areFor(origin: string, delivery: Delivery): boolean {
  return delivery.mode === "push" && new URL(delivery.url).origin === origin;
}

/** True also if both are null. */
export const sameCredentials = (
  one: DeliveryCredentials | null,
  other: DeliveryCredentials | null,
): boolean => (one === null ? other === null : one.equals(other));
