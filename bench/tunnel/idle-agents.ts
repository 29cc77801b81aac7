/**
 * Many idle agents in one process, each like one of our agents without visitors. Prints `ready` when all are online,
 * and fails when one is lost.
 *
 * Arguments: how many, host, port. The authtoken is in BENCH_AUTHTOKEN.
 */
import { Secret } from '../../src/lib/secrets/secret.ts'
import type { WireError } from '../../src/link/wire/wire-error.ts'
import { goOnline } from './light-agent.ts'

/** How many connect at the same time. */
const AT_ONCE = 16

const [count = '', host = '', port = ''] = process.argv.slice(2)
const authtoken = new Secret(process.env.BENCH_AUTHTOKEN ?? '')

let isStopping = false
process.once('SIGTERM', () => {
  isStopping = true
  process.exit(0)
})

let left = Number(count)
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    while (left-- > 0) await goOnline({ host, port: Number(port), authtoken, scheme: 'http', onLost: lost })
  }),
)
console.log('ready')

function lost(error: WireError | undefined): void {
  if (isStopping) return
  console.error(`an agent was lost: ${error?.message ?? 'the server ended its session'}`)
  process.exit(1)
}
