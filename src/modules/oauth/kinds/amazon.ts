/** Login with Amazon. */
import { type OAuthKind, textOf } from '../kind.ts'

export const amazon: OAuthKind = {
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
}
