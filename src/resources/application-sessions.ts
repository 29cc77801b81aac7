/** Application sessions: logins of visitors, each of one browser at one route. */
import { nullable } from '../lib/shape/schema.ts'
import { Type } from '../lib/shape/type.ts'
import { RefSchema } from '../model/ref.ts'
import { loggedIn } from './resource.ts'

const userAgent = Type.Object(
  {
    raw: Type.String({ description: 'The header `User-Agent`, cut to 512 bytes.' }),
    browser_name: Type.String({ description: 'Such as `Firefox`; empty when it is not known.' }),
    browser_version: Type.String({ description: 'Such as `128`; empty when it is not known.' }),
    device_type: Type.String({ description: '`Desktop`, `Mobile`, `Tablet` or `Bot`; empty when it is not known.' }),
    os_name: Type.String({ description: 'Such as `Linux`; empty when it is not known.' }),
    os_version: Type.String({ description: 'Such as `10.15.7`; empty when it is not known.' }),
  },
  { additionalProperties: false, description: 'What the browser said of itself at the login.' },
)

const location = Type.Object(
  {
    country_code: nullable(Type.String({ description: 'ISO 3166 code of the country.' })),
    latitude: nullable(Type.Number({ description: 'Degrees.' })),
    longitude: nullable(Type.Number({ description: 'Degrees.' })),
    lat_long_radius_km: nullable(Type.Integer({ description: 'How far off the place may be.' })),
  },
  { additionalProperties: false, description: 'Where the address is; null, since this server does not know.' },
)

export const applicationSessions = loggedIn({
  kind: 'application_session',
  noun: 'application session',
  about: 'Logins of visitors. Deleting one ends it.',
  prefix: 'as_',
  path: '/app/sessions',
  listKey: 'application_sessions',
  shows: {
    id: Type.String({ description: 'Unique identifier.' }),
    uri: Type.String({ description: 'Address of this session.' }),
    public_url: Type.String({ description: 'URL at which the visitor logged in.' }),
    browser_session: Type.Object(
      {
        user_agent: userAgent,
        ip_address: Type.String({ description: 'Address from which the visitor logged in.' }),
        location: nullable(location),
      },
      { additionalProperties: false, description: 'The browser that logged in.' },
    ),
    application_user: RefSchema,
    created_at: Type.String({ description: 'When the visitor logged in, RFC 3339.' }),
    last_active: Type.String({ description: 'When the visitor was last here, RFC 3339, to a minute.' }),
    expires_at: Type.String({ description: 'When the session ends if the visitor does not come back, RFC 3339.' }),
    // Either `endpoint` is set (an agent's), or the edge and its route are; the others are null.
    endpoint: nullable(RefSchema),
    edge: nullable(RefSchema),
    route: nullable(RefSchema),
  },
})
