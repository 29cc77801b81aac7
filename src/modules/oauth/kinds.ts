/** The providers of OAuth: each with its URLs and scopes, and with how it describes a user. */
import type { OAuthSettings } from './form.ts'
import { field, listOf, type OAuthKind, textOf, userOfClaims } from './kind.ts'
import { github } from './kinds/github.ts'
import { google } from './kinds/google.ts'

const FACEBOOK = 'https://graph.facebook.com/v21.0'
const MICROSOFT = 'https://login.microsoftonline.com/common/oauth2/v2.0'

export type ProviderName = keyof OAuthSettings['provider']

export const kinds: Readonly<Record<ProviderName, OAuthKind>> = {
  amazon: {
    authorizeUrl: 'https://www.amazon.com/ap/oa',
    tokenUrl: 'https://api.amazon.com/auth/o2/token',
    usesPkce: true,
    scopes: () => ['profile'],
    forced: { prompt: 'login' },
    async readProfile(ask) {
      const profile = await ask('https://api.amazon.com/user/profile')
      const user = { id: textOf(profile, 'user_id'), name: textOf(profile, 'name') }
      return { user: { ...user, email: textOf(profile, 'email'), username: '' } }
    },
  },
  facebook: {
    authorizeUrl: 'https://www.facebook.com/v21.0/dialog/oauth',
    tokenUrl: `${FACEBOOK}/oauth/access_token`,
    usesPkce: true,
    scopes: () => ['email', 'public_profile'],
    forced: { auth_type: 'reauthenticate' },
    async readProfile(ask) {
      // Facebook returns confirmed addresses only.
      const me = await ask(`${FACEBOOK}/me?fields=id,name,email`)
      return { user: { id: textOf(me, 'id'), name: textOf(me, 'name'), email: textOf(me, 'email'), username: '' } }
    },
  },
  github,
  gitlab: {
    authorizeUrl: 'https://gitlab.com/oauth/authorize',
    tokenUrl: 'https://gitlab.com/oauth/token',
    usesPkce: true,
    scopes: () => ['read_user'],
    forced: { prompt: 'login' },
    async readProfile(ask) {
      const user = await ask('https://gitlab.com/api/v4/user')
      // An account can be used before its first address is confirmed. Later addresses appear only once they are confirmed.
      const isConfirmed = typeof field(user, 'confirmed_at') === 'string'
      const email = isConfirmed ? textOf(user, 'email') : ''
      return { user: { id: textOf(user, 'id'), name: textOf(user, 'name'), email, username: textOf(user, 'username') } }
    },
  },
  google,
  linkedin: {
    authorizeUrl: 'https://www.linkedin.com/oauth/v2/authorization',
    tokenUrl: 'https://www.linkedin.com/oauth/v2/accessToken',
    // The token endpoint refuses a PKCE verifier from applications that have a secret.
    usesPkce: false,
    scopes: () => ['openid', 'profile', 'email'],
    forced: { prompt: 'login' },
    async readProfile(ask) {
      return { user: userOfClaims(await ask('https://api.linkedin.com/v2/userinfo')) }
    },
  },
  /** Personal accounts, and those of every organization. */
  microsoft: {
    authorizeUrl: `${MICROSOFT}/authorize`,
    tokenUrl: `${MICROSOFT}/token`,
    usesPkce: true,
    scopes: ({ later }) => ['openid', 'profile', 'email', 'User.Read', ...(later ? ['offline_access'] : [])],
    forced: { prompt: 'login' },
    async readProfile(ask) {
      const me = await ask('https://graph.microsoft.com/v1.0/me?$select=id,displayName,userPrincipalName')
      const principal = textOf(me, 'userPrincipalName')
      // The administrator of an organization can write any address into `mail`. The principal name must be in a domain
      // that the organization has proved to own; only that of a guest, which has a `#`, can be in another domain.
      const email = principal.includes('@') && !principal.includes('#') ? principal : ''
      return { user: { id: textOf(me, 'id'), name: textOf(me, 'displayName'), email, username: principal } }
    },
  },
  twitch: {
    authorizeUrl: 'https://id.twitch.tv/oauth2/authorize',
    tokenUrl: 'https://id.twitch.tv/oauth2/token',
    usesPkce: true,
    scopes: () => ['user:read:email'],
    forced: { force_verify: 'true' },
    async readProfile(ask, { clientId }) {
      const [user] = listOf(field(await ask('https://api.twitch.tv/helix/users', { 'client-id': clientId }), 'data'))
      // Twitch returns verified addresses only.
      const about = {
        name: textOf(user, 'display_name'),
        email: textOf(user, 'email'),
        username: textOf(user, 'login'),
      }
      return { user: { id: textOf(user, 'id'), ...about } }
    },
  },
}
