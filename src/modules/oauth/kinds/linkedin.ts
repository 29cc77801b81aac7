/** LinkedIn. */
import { type OAuthKind, userOfClaims } from '../kind.ts'

export const linkedin: OAuthKind = {
  authorizeUrl: 'https://www.linkedin.com/oauth/v2/authorization',
  tokenUrl: 'https://www.linkedin.com/oauth/v2/accessToken',
  // The token endpoint refuses a PKCE verifier from applications that have a secret.
  usesPkce: false,
  scopes: () => ['openid', 'profile', 'email'],
  forced: { prompt: 'login' },
  async readProfile(ask) {
    return { user: userOfClaims(await ask('https://api.linkedin.com/v2/userinfo')) }
  },
}
