/** Twitch. */
import { field, listOf, type OAuthKind, textOf } from '../kind.ts'

export const twitch: OAuthKind = {
  authorizeUrl: 'https://id.twitch.tv/oauth2/authorize',
  tokenUrl: 'https://id.twitch.tv/oauth2/token',
  usesPkce: true,
  scopes: () => ['user:read:email'],
  forced: { force_verify: 'true' },
  async readProfile(ask, { clientId }) {
    const [user] = listOf(field(await ask('https://api.twitch.tv/helix/users', { 'client-id': clientId }), 'data'))
    // Twitch returns verified addresses only.
    const about = { name: textOf(user, 'display_name'), email: textOf(user, 'email'), username: textOf(user, 'login') }
    return { user: { id: textOf(user, 'id'), ...about } }
  },
}
