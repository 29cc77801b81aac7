/** Application sessions: logins of visitors, each from one browser at one route. */
import { nullable } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { RefSchema } from '../../model/ref.ts'
import { loggedIn } from './resource.ts'

const userAgent = Type.Object(
  {
    raw: Type.String({ description: 'The header `User-Agent`, cut to 512 bytes.' }),
    browser_name: Type.String({ description: 'Such as `Firefox`; empty when unknown.' }),
    browser_version: Type.String({ description: 'Such as `128`; empty when unknown.' }),
    device_type: Type.String({ description: '`Desktop`, `Mobile`, `Tablet` or `Bot`; empty when unknown.' }),
    os_name: Type.String({ description: 'Such as `Linux`; empty when unknown.' }),
    os_version: Type.String({ description: 'Such as `10.15.7`; empty when unknown.' }),
  },
  { additionalProperties: false, description: 'What the browser sent about itself at the login.' },
)

const location = Type.Object(
  {
    country_code: nullable(Type.String({ description: 'ISO 3166 code of the country.' })),
    latitude: nullable(Type.Number({ description: 'Degrees.' })),
    longitude: nullable(Type.Number({ description: 'Degrees.' })),
    lat_long_radius_km: nullable(Type.Integer({ description: 'Accuracy of the position, in kilometres.' })),
  },
  { additionalProperties: false, description: 'Location of the address; always null: this server does not know it.' },
)

export const applicationSessions = loggedIn({
  kind: 'application_session',
  about: 'Logins of visitors. Deleting one ends it.',
  prefix: 'as_',
  path: '/app/sessions',
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
    last_active: Type.String({ description: 'When the visitor was last active, RFC 3339, to the minute.' }),
    expires_at: Type.String({ description: 'When the session ends if the visitor does not come back, RFC 3339.' }),
    // Either `endpoint` is set (an agent's), or the edge and its route are; the others are null.
    endpoint: nullable(RefSchema),
    edge: nullable(RefSchema),
    route: nullable(RefSchema),
  },
})
