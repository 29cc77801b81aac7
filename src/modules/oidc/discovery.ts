/** Reads the discovery document of a provider: when it is first needed, and then in the background while it is in use. */
import type { createRemoteJWKSet } from 'jose'
import type { Configuration } from 'openid-client'
import { SharedRead } from '../../lib/http/shared-read.ts'
import { webFetch } from '../login/web-fetch.ts'
import type { ModuleTools } from '../tools.ts'
import type { Libraries } from './libraries.ts'
import type { OidcClient } from './oidc-provider.ts'

/** How long a document and the keys are used before they are read again, in milliseconds. */
const FRESH_MS = 15 * 60_000

/** The minimum time between fetches for tokens with unknown keys, in milliseconds. Only the provider sends tokens. */
const KEYS_COOLDOWN_MS = 1000

/** how far our clock and the provider's may be apart, in seconds. */
export const CLOCK_TOLERANCE = 60

export interface Discovered {
  readonly config: Configuration
  readonly keys: ReturnType<typeof createRemoteJWKSet>
  /** Algorithms that ID tokens may be signed with. */
  readonly algorithms: readonly string[]
}

/** Signatures that only the provider can make; symmetric ones could be made by the client too. */
const asymmetric = /^(RS|PS|ES)(256|384|512)$|^(EdDSA|Ed25519)$/

/** Rejects when the provider cannot be reached, or its document cannot be used. */
export function discovery(
  client: OidcClient,
  libraries: () => Promise<Libraries>,
  { fetch, now, log }: Pick<ModuleTools, 'fetch' | 'now' | 'log'>,
): () => Promise<Discovered> {
  const document = new SharedRead(async () => discover(client, await libraries(), fetch), now)
  const onFault = () => log.debug({ issuer: client.issuer }, 'discovery document cannot be read again')
  return () => document.value(FRESH_MS, Number.POSITIVE_INFINITY, onFault)
}

async function discover(
  { issuer, client_id, client_secret }: OidcClient,
  { openid, jose }: Libraries,
  fetch: ModuleTools['fetch'],
): Promise<Discovered> {
  const url = new URL(issuer)
  const ask = webFetch(fetch)
  const basic = openid.ClientSecretBasic(client_secret)
  const post = openid.ClientSecretPost(client_secret)
  const config = await openid.discovery(
    url,
    client_id,
    { [openid.clockTolerance]: CLOCK_TOLERANCE },
    (server, ...rest) => {
      const methods = server.token_endpoint_auth_methods_supported
      // `client_secret_basic` is the default for a provider that lists no methods.
      const isBasic = methods === undefined || methods.includes('client_secret_basic')
      return (isBasic ? basic : post)(server, ...rest)
    },
    {
      [openid.customFetch]: ask,
      // The form allows http for loopback issuers only, and so does our `fetch` for every URL.
      ...(url.protocol === 'http:' && { execute: [openid.allowInsecureRequests] }),
    },
  )
  const server = config.serverMetadata()
  const isAddress = (address: unknown): boolean =>
    typeof address === 'string' && URL.canParse(address) && ['https:', url.protocol].includes(new URL(address).protocol)
  if (!isAddress(server.authorization_endpoint) || !isAddress(server.token_endpoint) || !isAddress(server.jwks_uri)) {
    throw new Error('the discovery document lacks an address of an endpoint')
  }
  const listed = server.id_token_signing_alg_values_supported
  const algorithms = (Array.isArray(listed) ? listed : ['RS256']).filter((each) => asymmetric.test(String(each)))
  const keys = jose.createRemoteJWKSet(new URL(server.jwks_uri ?? ''), {
    [jose.customFetch]: ask,
    cacheMaxAge: FRESH_MS,
    cooldownDuration: KEYS_COOLDOWN_MS,
  })
  return { config, keys, algorithms }
}
