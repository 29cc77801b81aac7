/** The page about several nodes, followed from top to bottom with two of them. */
import assert from 'node:assert/strict'
import { postgresUrl } from '../support/databases.ts'
import { portsToKeep } from '../support/free-port.ts'
import { followPage } from './follow.ts'
import { service } from './service.ts'

/** Gone when this file is done. */
const database = await postgresUrl()

/** The ports of the two nodes, as they stand on the page. */
const ports = [1, 2].flatMap((node) => Array.from({ length: 7 }, (_, i) => `75${node}${i + 1}`))

const hello = (said: string) => assert.match(said, /^hello$/m)

followPage('docs/cluster.md', {
  elsewhere: { ini: 'settings of PostgreSQL; test/soak/failover.long.ts lets one fail over' },
  async prepare(reader) {
    const here: Record<string, string> = {
      3000: await service(reader),
      'postgres://postern:…@db.example.com/postern': database,
    }
    for (const [i, port] of (await portsToKeep(ports.length)).entries()) here[ports[i] ?? ''] = String(port)
    return here
  },
  checks: {
    'export POSTERN_API_KEY': (said) => {
      for (const name of ['node-1', 'node-2']) assert.match(said, new RegExp(`\\t${name}\\t`))
    },
    'curl --cacert node-1/ca.pem https://app.localhost:7516/': hello,
    'curl --cacert node-1/ca.pem https://app.localhost:7526/': hello,
    'POSTERN_API_URL=http://127.0.0.1:7522 postern api tunnels': (said) => assert.match(said, /app\.localhost/),
  },
})
