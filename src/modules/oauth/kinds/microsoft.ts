/** Microsoft: personal accounts, and those of every organization. */
import { type OAuthKind, textOf } from '../kind.ts'

const LOGIN = 'https://login.microsoftonline.com/common/oauth2/v2.0'

export const microsoft: OAuthKind = {
  authorizeUrl: `${LOGIN}/authorize`,
  tokenUrl: `${LOGIN}/token`,
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
}
