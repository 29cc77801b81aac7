/** Drives our own agent. */
import { Agent } from '../../../src/agent/agent.ts'
import { type Commands, commandNames, noCommands } from '../../../src/agent/agent-commands.ts'
import { AgentFault } from '../../../src/agent/agent-fault.ts'
import { textReader } from '../../../src/agent/config/text-files.ts'
import { readTunnel, type TunnelOptions } from '../../../src/agent/config/tunnel-options.ts'
import { parseServer } from '../../../src/agent/server-address.ts'
import type { AgentTunnelPlan } from '../../../src/agent/tunnel.ts'
import { Secret } from '../../../src/lib/secrets/secret.ts'
import { OptionReader, type Problem } from '../../../src/link/options/option-reader.ts'
import { authtokenAccess, authtokenCredential } from './authtokens.ts'
import { type AgentDriver, AgentRefusal, type ConnectedAgent, type ConnectOptions } from './driver.ts'

const VERSION = '7.8.9'

export const ownDriver: AgentDriver = {
  name: 'our own agent',
  missing: false,
  shown: { version: /^7\.8\.9$/, os: process.platform, transport: 'service/v2' },
  hasSession: true,
  tellsServices: true,
  answersCommands: true,
  refusedInLog: /No tunnel credential.*agent connection refused|agent connection refused.*No tunnel credential/,
  lacks: [],
  credentials: '/credentials',
  credential: authtokenCredential,
  access: authtokenAccess,
  async connect({ server, ca, authtoken, metadata, commands = {}, heartbeat, onLost }) {
    const agent = new Agent({
      server: parseServer(server),
      ca,
      authtoken: new Secret(authtoken),
      version: VERSION,
      commands: commandsOf(commands),
      onEvent({ type }) {
        if (type === 'offline') onLost?.()
      },
      ...(metadata !== undefined && { metadata }),
      ...(heartbeat && {
        heartbeatIntervalMs: heartbeat.everyS * 1000,
        heartbeatToleranceMs: heartbeat.toleranceS * 1000,
      }),
    })
    await refusing(() => agent.start())
    return {
      async open(options) {
        const tunnel = await refusing(() => agent.open(planOf(options)))
        return { url: tunnel.url, close: () => agent.closeTunnel(tunnel) }
      },
      close: () => agent.close(),
    } satisfies ConnectedAgent
  },
}

function commandsOf(given: NonNullable<ConnectOptions['commands']>): Commands {
  const none = noCommands('the test takes no such command')
  const handlers = commandNames.map((name) => {
    const run = given[name]
    const handler = run && {
      unsupported: '',
      run: () => {
        run()
        return {}
      },
    }
    return [name, handler ?? none[name]] as const
  })
  return Object.fromEntries(handlers) as Commands // one for each name
}

function planOf(options: TunnelOptions): AgentTunnelPlan {
  const problems: Problem[] = []
  const plans = readTunnel(new OptionReader({ ...options }, problems), { name: 'test', readText: textReader('/') })
  if (!plans || problems.length > 0) throw new Error(`not a tunnel: ${JSON.stringify(problems)}`)
  return plans[0]
}

async function refusing<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (cause) {
    if (!(cause instanceof AgentFault) || cause.code !== 'refused') throw cause
    throw new AgentRefusal(cause.serverCode, cause.message, { cause })
  }
}
