/** An official agent in a separate process, which can be killed: otherwise its connection stays open and silent. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { sdkDriver } from '../interop/agents/sdk-driver.ts'
import type { Owner } from '../support/upstream.ts'

interface Order {
  /** `host:port`. */
  readonly server: string
  /** PEM. */
  readonly ca: string
  readonly authtoken: string
  /** The service, as a URL. */
  readonly addr: string
}

export interface OfficialAgent {
  readonly pid: number
  /** The URL of its endpoint. */
  readonly url: string
  end(): Promise<void>
}

/** Resolves when its endpoint is online. */
export async function startOfficialAgent(owner: Owner, order: Order): Promise<OfficialAgent> {
  const child = fork(fileURLToPath(import.meta.url))
  const ended = once(child, 'exit')
  const end = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  owner.after(end)
  child.send(order)
  const failed = ended.then(() => Promise.reject(new Error('the official agent ended before it was online')))
  failed.catch(() => {})
  const [url] = (await Promise.race([once(child, 'message'), failed])) as [string] // sent below
  return { pid: child.pid ?? 0, url, end }
}

async function run({ server, ca, authtoken, addr }: Order): Promise<void> {
  const session = await sdkDriver.connect({ server, ca, authtoken })
  const { url } = await session.open({ addr })
  process.send?.(url)
}

if (import.meta.main) {
  process.on('disconnect', () => process.exit())
  process.once('message', (order) => void run(order as Order))
}
