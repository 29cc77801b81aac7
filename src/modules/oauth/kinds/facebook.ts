/** Facebook Login. */
import { type OAuthKind, textOf } from '../kind.ts'

const GRAPH = 'https://graph.facebook.com/v21.0'

export const facebook: OAuthKind = {
  authorizeUrl: 'https://www.facebook.com/v21.0/dialog/oauth',
  tokenUrl: `${GRAPH}/oauth/access_token`,
  usesPkce: true,
  scopes: () => ['email', 'public_profile'],
  forced: { auth_type: 'reauthenticate' },
  async readProfile(ask) {
    // Facebook returns confirmed addresses only.
    const me = await ask(`${GRAPH}/me?fields=id,name,email`)
    return { user: { id: textOf(me, 'id'), name: textOf(me, 'name'), email: textOf(me, 'email'), username: '' } }
  },
}
