/** Drives the `ssh` of this machine: one connection for each tunnel, restarted when it ends, as by systemd. */
import type { TunnelOptions } from '../../../src/agent/config/tunnel-options.ts'
import { flagsOf } from '../../../src/link/options/take-flags.ts'
import type { TunnelFlag } from '../../../src/link/options/tunnel-flags.ts'
import type { Json } from '../../support/api-client.ts'
import { until } from '../../support/until.ts'
import { keyFolder, makeKey, missing, runSsh, type Ssh } from '../ssh/openssh.ts'
import { type AgentDriver, AgentRefusal, type ConnectedAgent, type ConnectOptions, type OpenTunnel } from './driver.ts'
import { notOverSsh } from './not-over-ssh.ts'

/** Pause before a client that ended is restarted, in milliseconds. */
const RESTART_MS = 200

const folder = keyFolder()
let keys = 0

export const sshDriver: AgentDriver = {
  name: 'plain ssh',
  missing,
  shown: { version: /^OpenSSH_/, os: '', transport: 'ssh' },
  hasSession: false,
  tellsServices: false,
  answersCommands: false,
  refusedInLog: /agent connection refused/,
  lacks: notOverSsh,
  credentials: '/ssh_credentials',
  async credential({ admin }, body = {}) {
    const { file, publicLine } = makeKey(folder, `key-${keys++}`)
    const { id } = await admin.create('/ssh_credentials', { public_key: publicLine, ...body })
    return { id, authtoken: file }
  },
  async access(platform) {
    const { authtoken } = await sshDriver.credential(platform)
    return { server: `127.0.0.1:${platform.sshPort}`, ca: '', authtoken, admin: platform.admin }
  },
  async connect(options) {
    const open = new Set<OpenTunnel>()
    return {
      async open(tunnel) {
        const opened = await openTunnel(options, tunnel)
        open.add(opened)
        return opened
      },
      async close() {
        await Promise.all([...open].map((each) => each.close()))
      },
    } satisfies ConnectedAgent
  },
}

async function openTunnel({ server, authtoken, admin }: ConnectOptions, tunnel: TunnelOptions): Promise<OpenTunnel> {
  const port = Number(server.slice(server.lastIndexOf(':') + 1))
  const start = (): Ssh => runSsh({ port, key: { file: authtoken }, ...commandOf(tunnel) })
  let running = start()
  const url = await addressOf(running)
  let isClosed = false
  const keepRunning = async (): Promise<void> => {
    while (!isClosed) {
      await running.ended
      await new Promise((resolve) => setTimeout(resolve, RESTART_MS))
      if (!isClosed) running = start()
    }
  }
  void keepRunning()
  /** How many tunnels like it are online; 0 without an API client. */
  const online = async (): Promise<number> => {
    const { tunnels } = (await admin?.get('/tunnels?limit=100').catch(() => undefined)) ?? { tunnels: [] }
    const isIt = (each: Json): boolean =>
      url === '' ? JSON.stringify(each.labels) === JSON.stringify(tunnel.labels) : each.public_url === url
    return tunnels.filter(isIt).length
  }
  return {
    url,
    async close() {
      if (isClosed) return
      isClosed = true
      const before = await online()
      await running.stop()
      if (before > 0) await until('its tunnel is gone', async () => (await online()) < before)
    },
  }
}

/** The address; `''` with labels. Rejects with the message of the refusal. */
async function addressOf(client: Ssh): Promise<string> {
  try {
    const [, address = ''] = await client.says(/^Forwarding +(?:labels|(\S+))/m)
    return address
  } catch (cause) {
    const [, message = '', code = ''] = /^(.*) \((ERR_NGROK_\d+)\)\s*$/m.exec(client.err()) ?? []
    throw code === '' ? cause : new AgentRefusal(code, message, { cause })
  }
}

/** The command line that a person would write for a tunnel. */
function commandOf(tunnel: TunnelOptions): { args: readonly string[]; command: readonly string[] } {
  const { addr = '', proto = 'http', labels, domain, schemes } = tunnel
  const kind = labels ? 'labeled' : proto
  const service = String(addr).replace(/^(tcp|http):\/\//, '')
  const to = service.includes(':') ? service : `127.0.0.1:${service}`
  const ports = { http: schemes?.[0] === 'http' ? 80 : 443, tls: 443, tcp: 0, labeled: 0 } as const
  const place = `${domain === undefined ? '' : `${domain}:`}${ports[kind]}`
  // The name and the scheme are in the forward.
  const flags = flagsOf('gateway', kind).filter(({ name }) => name !== 'domain' && name !== 'scheme')
  return { args: ['-R', `${place}:${to}`], command: [kind, ...flags.flatMap((flag) => wordsOf(flag, tunnel))] }
}

function wordsOf({ name, path: [key, inner], takes }: TunnelFlag, tunnel: Json): string[] {
  const value: Json = inner === undefined ? tunnel[key] : tunnel[key]?.[inner]
  if (value === undefined || value === false) return []
  if (takes === undefined) return [`--${name}`]
  return textsOf(value, key).map((text) => `--${name}='${text.replaceAll("'", "'\\''")}'`)
}

function textsOf(value: Json, key: string): string[] {
  if (Array.isArray(value)) return value.map(String)
  if (typeof value !== 'object') return [String(value)]
  return Object.entries<string>(value).map(([name, each]) => `${name}${key === 'labels' ? '=' : ':'}${each}`)
}
