/** An OAuth provider as logins see it: the code flow (RFC 6749 §4.1), with PKCE where it is supported. */
import { createHash, randomBytes } from 'node:crypto'
import { FetchFault } from '../../lib/http/outbound-fetch.ts'
import { compileAllowLists } from '../login/allow-list.ts'
import { digestOf, type LoggedIn, type LoginFault, type LoginProvider } from '../login/login-provider.ts'
import type { ModuleTools } from '../tools.ts'
import type { OAuthSettings } from './form.ts'
import { AskFault, type AskProvider, type OAuthKind, type Profile, type WantedFacts } from './kind.ts'
import { exchange, readJson, type TokenFault, type Tokens } from './oauth-tokens.ts'
import type { ProviderSettings } from './providers.ts'

/** The most organizations or teams that are stored, and the most characters of each: a login may store 16 KiB in all. */
const MAX_MEMBERSHIPS = 50
const MAX_NAME_LENGTH = 80

interface OAuthClient extends OAuthSettings {
  readonly name: string
  readonly kind: OAuthKind
  readonly application: ProviderSettings
}

export function oauthProvider(client: OAuthClient, { fetch }: Pick<ModuleTools, 'fetch'>): LoginProvider {
  const { name, kind, application, params: ownParams, keepsMemberships = false } = client
  const checkEveryMs = client.auth_check_interval * 1000
  const { client_id: clientId, client_secret: clientSecret } = application
  // No provider has all of these lists.
  const lists: Parameters<typeof compileAllowLists>[0] = application
  const isAllowed = compileAllowLists(lists)
  const wanted: WantedFacts = {
    clientId,
    teams: keepsMemberships || (lists.teams?.length ?? 0) > 0,
    organizations: keepsMemberships || (lists.organizations?.length ?? 0) > 0,
    groups: (lists.groups?.length ?? 0) > 0,
    lists,
    later: checkEveryMs > 0,
  }
  const scope = [...new Set([...kind.scopes(wanted), ...application.scopes])].join(' ')
  const tokenClient = { tokenUrl: kind.tokenUrl, clientId, clientSecret, fetch }

  return {
    name,
    clientId,
    identity: digestOf([name, clientId, scope]),
    rules: digestOf([lists.email_addresses, lists.email_domains, lists.teams, lists.organizations, lists.groups]),
    checkEveryMs,
    callbackPaths: ['/oauth2/callback'],

    begin({ state, redirectUri, isForced }) {
      const verifier = kind.usesPkce ? randomBytes(32).toString('base64url') : ''
      const url = new URL(kind.authorizeUrl)
      const params = {
        ...ownParams,
        response_type: 'code',
        client_id: clientId,
        redirect_uri: redirectUri,
        scope,
        state,
        ...(kind.usesPkce && { code_challenge: challengeOf(verifier), code_challenge_method: 'S256' }),
        ...kind.params?.(wanted),
        ...(isForced && kind.forced),
      }
      for (const [key, value] of Object.entries(params)) url.searchParams.set(key, value)
      return Promise.resolve({ location: url.href, kept: { verifier } })
    },

    async finish({ params, redirectUri, kept: { verifier = '' } }) {
      const [code = '', ...more] = params.getAll('code')
      if (code === '' || more.length > 0) {
        return { fault: 'LOGIN_PROVIDER_ERROR', reason: 'the provider sent neither one code nor an error' }
      }
      const tokens = await exchange(tokenClient, {
        grant_type: 'authorization_code',
        code,
        redirect_uri: redirectUri,
        ...(verifier !== '' && { code_verifier: verifier }),
      })
      if ('error' in tokens) {
        return { fault: tokens.isRefused ? 'LOGIN_CODE_REFUSED' : 'LOGIN_EXCHANGE_FAILED', reason: tokens.error }
      }
      const outcome = await profileOf(tokens)
      if ('status' in outcome) return { fault: 'LOGIN_EXCHANGE_FAILED', reason: outcome.message }
      return judge(outcome, tokens)
    },

    async check({ user, kept: { accessToken = '', refreshToken = '' } }) {
      const again = (reason: string): LoginFault => ({ fault: 'log_in_again', reason })
      const down = (reason: string): LoginFault => ({ fault: 'LOGIN_PROVIDER_DOWN', reason })
      let tokens: Tokens = { accessToken, refreshToken }
      let outcome = await profileOf(tokens)
      if ('status' in outcome && outcome.status === 401 && refreshToken !== '') {
        const renewed = await renew(refreshToken)
        if ('error' in renewed) return renewed.isRefused ? again(renewed.error) : down(renewed.error)
        tokens = renewed
        outcome = await profileOf(tokens)
      }
      if ('status' in outcome)
        return outcome.status === 401 ? again('the token is no longer valid') : down(outcome.message)
      if (outcome.user.id !== user.id) return again('the provider answered about another user')
      return judge(outcome, tokens)
    },
  }

  /** RFC 6749 §6: a provider may return a new refresh token, or keep the old one valid. */
  async function renew(refreshToken: string): Promise<Tokens | TokenFault> {
    const renewed = await exchange(tokenClient, { grant_type: 'refresh_token', refresh_token: refreshToken })
    return 'error' in renewed ? renewed : { ...renewed, refreshToken: renewed.refreshToken || refreshToken }
  }

  async function profileOf({ accessToken }: Tokens): Promise<Profile | AskFault> {
    const ask: AskProvider = async (url, headers = {}) => {
      const accept = { accept: 'application/json', authorization: `Bearer ${accessToken}` }
      const { status, body } = await fetch(url, { headers: { ...accept, ...headers }, followsRedirects: false })
      if (status !== 200) throw new AskFault(status, `${new URL(url).host} answered ${status}`)
      const json = readJson(body)
      if (json === undefined) throw new AskFault(0, `${new URL(url).host} did not answer with JSON`)
      return json
    }
    try {
      return await kind.readProfile(ask, wanted)
    } catch (error) {
      if (error instanceof AskFault) return error
      if (error instanceof FetchFault) return new AskFault(0, error.message)
      throw error
    }
  }

  function judge(profile: Profile, { accessToken, refreshToken }: Tokens): LoggedIn | LoginFault {
    const { user, userHeaders } = profile
    if (user.id === '') return { fault: 'LOGIN_CLAIMS_REFUSED', reason: 'no usable id of the user' }
    if (!isAllowed(profile)) return { fault: 'LOGIN_NOT_ALLOWED', reason: 'no list names the user' }
    const memberships = keepsMemberships && { memberships: membershipsOf(profile) }
    return { user, kept: { ...userHeaders, accessToken, ...(refreshToken !== '' && { refreshToken }), ...memberships } }
  }
}

/** The memberships that are stored with a login, up to a limit. Any beyond it are ignored. */
function membershipsOf({ organizations = [], teams = [] }: Profile): string {
  const some = (names: readonly string[]): readonly string[] =>
    names.filter((each) => each !== '' && each.length <= MAX_NAME_LENGTH).slice(0, MAX_MEMBERSHIPS)
  return JSON.stringify({ organizations: some(organizations), teams: some(teams) })
}

function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}
