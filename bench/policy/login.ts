/** Logs a visitor in at an edge: stores a login as the server would, and returns its cookie. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { StoredLogins } from '../../src/control-plane/records/stored-logins.ts'
import { openStore } from '../../src/control-plane/store/store.ts'
import { IdSource } from '../../src/lib/ids.ts'
import { createLog } from '../../src/lib/log/create-log.ts'
import { readKeyFile } from '../../src/lib/secrets/seal.ts'
import { cookieNames } from '../../src/modules/login/login-cookies.ts'
import { oidcProvider } from '../../src/modules/oidc/oidc-provider.ts'
import { putModule, type Side } from '../edge/scene.ts'
import type { SeededEdge } from '../edge/seed.ts'

const client = { issuer: 'https://id.bench.test', client_id: 'bench', client_secret: 'bench-secret', scopes: [] }

/** Requires a login at the edge and logs a user in; resolves with the `Cookie` header. */
export async function logIn({ api, store: { dataDir } }: Side, edge: SeededEdge): Promise<string> {
  const { issuer, client_id, client_secret } = client
  await putModule(api, edge, 'oidc', { issuer, client_id, client_secret })
  const log = createLog({ level: 'silent' })
  const store = await openStore(`sqlite:${join(dataDir, 'postern.db')}`)
  const sealer = readKeyFile(join(dataDir, 'secret.key'))
  const logins = new StoredLogins({ store, sealer, ids: new IdSource({ now: Date.now }) })
  try {
    const fetch = () => Promise.reject(new Error('no provider is asked here'))
    const { identity } = oidcProvider(client, { fetch, now: Date.now, log })
    const secret = randomBytes(32).toString('base64url')
    const now = Date.now()
    await logins.beginLogin({
      place: { secret, host: edge.name, edgeId: edge.id, routeId: edge.routeId },
      login: {
        identity,
        user: { id: 'u-1', name: 'Ada Lovelace', email: 'ada@example.com', username: 'ada' },
        kept: { rules: '' },
        createdAt: now,
        checkedAt: now,
        lastSeenAt: now,
      },
      origin: { provider: 'oidc', providerUrl: issuer, ip: '192.0.2.7', userAgent: 'wrk', expiresAt: now + 3_600_000 },
    })
    return `${cookieNames('').session}=${secret}`
  } finally {
    await store.close()
  }
}
