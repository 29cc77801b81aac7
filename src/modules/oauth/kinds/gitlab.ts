/** GitLab.com. */
import { field, type OAuthKind, textOf } from '../kind.ts'

export const gitlab: OAuthKind = {
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
}
