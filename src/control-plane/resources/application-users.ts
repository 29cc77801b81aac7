/** Application users: visitors who logged in at a route. */
import { Type } from '../../lib/shape/type.ts'
import { loggedIn } from './resource.ts'

export const applicationUsers = loggedIn({
  kind: 'application_user',
  about: 'Visitors who logged in through a provider. Deleting one ends all its sessions.',
  prefix: 'au_',
  path: '/app/users',
  shows: {
    id: Type.String({ description: 'Unique identifier.' }),
    uri: Type.String({ description: 'Address of this user.' }),
    identity_provider: Type.Object(
      {
        name: Type.String({ description: 'Name of the provider, such as `google` or `oidc`.' }),
        url: Type.String({ description: 'Address of the provider; empty when unknown.' }),
      },
      { additionalProperties: false, description: 'Where the user logged in.' },
    ),
    provider_user_id: Type.String({ description: 'Id of the user at the provider.' }),
    username: Type.String({ description: 'Name of the account at the provider; empty when it has none.' }),
    email: Type.String({ description: 'Email address; empty when the provider did not give one.' }),
    name: Type.String({ description: 'Name of the person; empty when the provider did not give one.' }),
    created_at: Type.String({ description: 'When the user first logged in, RFC 3339.' }),
    last_active: Type.String({ description: 'When the user was last active, RFC 3339, to the minute.' }),
    last_login: Type.String({ description: 'When the user last logged in, RFC 3339.' }),
  },
})
