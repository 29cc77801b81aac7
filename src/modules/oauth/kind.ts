/** What differs from one OAuth provider to the next: its addresses, its scopes, and how it tells who a user is. */
import type { AllowLists, Belongings } from '../login/allow-list.ts'
import type { LoginUser } from '../login/sessions.ts'

export interface OAuthKind {
  readonly authorizeUrl: string
  readonly tokenUrl: string
  /** Whether the provider takes PKCE; those that know nothing of it overlook it, and few refuse it. */
  readonly usesPkce: boolean
  /** What the login itself needs. */
  readonly scopes: (wanted: Wanted) => readonly string[]
  /** Further parameters of the way to the provider. */
  readonly params?: (wanted: Wanted) => Readonly<Record<string, string>>
  /** For the way to the provider of a user who must prove again who it is. */
  readonly forced: Readonly<Record<string, string>>
  readonly readProfile: (ask: Ask, wanted: Wanted) => Promise<Profile>
}

/** What there is to be found out, by what the module is told. */
export interface Wanted {
  readonly clientId: string
  readonly teams: boolean
  readonly organizations: boolean
  readonly groups: boolean
  /** What they are wanted for. */
  readonly lists: AllowLists
  /** Whether the user is asked about again after the login. */
  readonly later: boolean
}

export interface Profile extends Belongings {
  /** Headers of ours that tell the upstream more about the user, and their values. */
  readonly told?: Readonly<Record<`postern-auth-${string}`, string>>
}

/** Asks an address of the provider in the name of the user; rejects with `AskFault` and `FetchFault`. */
export type Ask = (url: string, headers?: Readonly<Record<string, string>>) => Promise<Json>

/** What a provider answered, of which nothing is known. */
export type Json = unknown

/** The provider does not tell. */
export class AskFault extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.name = 'AskFault'
    this.status = status
  }
}

/** Longest name or address that is taken, in characters. */
const MAX_LENGTH = 255

export function field(json: Json, name: string): Json {
  return typeof json === 'object' && json !== null && Object.hasOwn(json, name)
    ? (json as Readonly<Record<string, unknown>>)[name] // it has one of this name
    : undefined
}

/** A text or a number that is fit for a header; empty for anything else. */
export function textOf(json: Json, name: string): string {
  const value = field(json, name)
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value)
  return typeof value === 'string' && value.length <= MAX_LENGTH && !/\p{Cc}/u.test(value) ? value : ''
}

export function listOf(json: Json): readonly Json[] {
  return Array.isArray(json) ? json : []
}

/** The claims of OpenID Connect, which some providers answer with. */
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
