/** The page about several nodes, followed from top to bottom with two of them. */
import assert from 'node:assert/strict'
import { postgresUrl } from '../support/databases.ts'
import { portsToKeep } from '../support/free-port.ts'
import { followPage } from './follow.ts'
import { service } from './service.ts'

/** Dropped when this file is done. */
const database = await postgresUrl()

/** The ports of the two nodes, as the page has them. */
const ports = [1, 2].flatMap((node) => Array.from({ length: 7 }, (_, i) => `75${node}${i + 1}`))

const hello = (output: string) => assert.match(output, /^hello$/m)

followPage('docs/cluster.md', {
  testedBy: { ini: 'settings of PostgreSQL; test/soak/failover.long.ts tests a failover' },
  async prepare(reader) {
    const here: Record<string, string> = {
      3000: await service(reader),
      'postgres://postern:…@db.example.com/postern': database,
    }
    for (const [i, port] of (await portsToKeep(ports.length)).entries()) here[ports[i] ?? ''] = String(port)
    return here
  },
  checks: {
    'export POSTERN_API_KEY': (output) => {
      for (const name of ['node-1', 'node-2']) assert.match(output, new RegExp(`\\t${name}\\t`))
    },
    'curl --cacert node-1/ca.pem https://app.localhost:7516/': hello,
    'curl --cacert node-1/ca.pem https://app.localhost:7526/': hello,
    'POSTERN_API_URL=http://127.0.0.1:7522 postern api tunnels': (output) => assert.match(output, /app\.localhost/),
  },
})
