/** A platform in a separate process that measures the turns of its event loop and reports them to its parent. */
import { startPlatform } from '../support/platform.ts'
import { type Turn, TurnProbe } from '../support/turn-probe.ts'

/** The options of the child: where its data is. */
export interface Given {
  readonly dataDir: string
  readonly tcpPorts: string
}

/** The messages of the child. */
export type ProbeNews =
  | {
      readonly ready: { readonly url: string; readonly agents: string; readonly httpsPort: number; readonly ca: string }
      readonly apiKey: string
      readonly authtoken: string
      /** The longest turn from the start of the server until it was ready. */
      readonly longest: Turn
    }
  | { readonly longest: Turn }

async function main({ dataDir, tcpPorts }: Given): Promise<void> {
  const probe = new TurnProbe()
  const flags = { 'log-level': 'error', 'drain-timeout': '1s', 'tcp-ports': tcpPorts }
  const platform = await startPlatform({ dataDir, flags })
  const { url, agents, httpsPort, ca, apiKey, authtoken } = platform
  const say = (news: ProbeNews): void => void process.send?.(news)
  process.on('message', (asked) => {
    if (asked === 'longest') say({ longest: probe.take() })
    else void platform.stop().then(() => process.exit(0))
  })
  process.on('disconnect', () => process.exit(1))
  say({ ready: { url, agents, httpsPort, ca }, apiKey, authtoken, longest: probe.take() })
}

await main(JSON.parse(process.argv[2] ?? '{}') as Given)
