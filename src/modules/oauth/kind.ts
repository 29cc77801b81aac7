/** What differs between OAuth providers: URLs, scopes, and how each identifies a user. */

import type { LoginUser } from '../../model/logins.ts'
import type { AllowLists, Belongings } from '../login/allow-list.ts'

export interface OAuthKind {
  readonly authorizeUrl: string
  readonly tokenUrl: string
  /** Whether PKCE is used. Providers that do not know it ignore it; a few refuse it. */
  readonly usesPkce: boolean
  /** The scopes that the login itself needs. */
  readonly scopes: (wanted: WantedFacts) => readonly string[]
  /** Further parameters of the authorization request. */
  readonly params?: (wanted: WantedFacts) => Readonly<Record<string, string>>
  /** Parameters of the authorization request that make the user give credentials again. */
  readonly forced: Readonly<Record<string, string>>
  readonly readProfile: (ask: AskProvider, wanted: WantedFacts) => Promise<Profile>
}

/** What the settings need to know about a user. */
export interface WantedFacts {
  readonly clientId: string
  readonly teams: boolean
  readonly organizations: boolean
  readonly groups: boolean
  /** The lists that these are compared with. */
  readonly lists: AllowLists
  /** Whether the provider is asked about the user again after the login. */
  readonly later: boolean
}

export interface Profile extends Belongings {
  /** Further headers about the user for the upstream. */
  readonly userHeaders?: Readonly<Record<`postern-auth-${string}`, string>>
}

/** Sends a request to the provider on behalf of the user; rejects with `AskFault` and `FetchFault`. */
export type AskProvider = (url: string, headers?: Readonly<Record<string, string>>) => Promise<Json>

/** An answer of a provider, unchecked. */
export type Json = unknown

/** The provider answered with an error, or not with JSON. */
export class AskFault extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.name = 'AskFault'
    this.status = status
  }
}

/** The longest name or address that is accepted, in characters. */
const MAX_LENGTH = 255

export function field(json: Json, name: string): Json {
  return typeof json === 'object' && json !== null && Object.hasOwn(json, name)
    ? (json as Readonly<Record<string, unknown>>)[name] // an own field
    : undefined
}

/** A string or number that can be sent in a header; empty for anything else. */
export function textOf(json: Json, name: string): string {
  const value = field(json, name)
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  return typeof value === 'string' && value.length <= MAX_LENGTH && !/\p{Cc}/u.test(value) ? value : ''
}

export function listOf(json: Json): readonly Json[] {
  return Array.isArray(json) ? json : []
}

/** The user from claims of OpenID Connect, which some OAuth providers use. */
export function userOfClaims(json: Json): LoginUser {
  const verified = field(json, 'email_verified')
  const isVerified = verified === true || verified === 'true'
  return {
    id: textOf(json, 'sub'),
    name: textOf(json, 'name'),
    email: isVerified ? textOf(json, 'email') : '',
    username: textOf(json, 'preferred_username'),
  }
}
