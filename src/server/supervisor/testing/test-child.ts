/** A child for tests that serves next to nothing: control answers with the messages it got, workers with their ids. */
import { createServer as createHttpServer } from 'node:http'
import { connect, createServer, type Server } from 'node:net'
import { addressText, type ListenOn, listenOn } from '../../../lib/net/listen-on.ts'
import { runControl, type StartControl } from '../control-child.ts'
import { ownParent } from '../own-parent.ts'
import { runWorker, type StartWorker } from '../worker-child.ts'

const control: StartControl = async (settings, { listeners, linkPath, onListening, workersReady, restarts, node }) => {
  if (settings.region === 'broken-control') throw new Error('control is broken')
  const links = createServer((socket) => void socket.on('error', ignore).resume())
  await new Promise<void>((resolve) => links.listen(linkPath, resolve))
  onListening()
  const workers = await workersReady
  let region = settings.region
  let isDraining = false
  const api = createHttpServer((request, response) => {
    if (request.url === '/crash') process.exit(3)
    const { pid } = process
    const { databaseUrl } = settings
    response.end(JSON.stringify({ pid, region, isDraining, workers, databaseUrl, node, restarts: restarts() }))
  })
  const metrics = createServer()
  const addresses = { api: await listen(api, listeners.api), metrics: await listen(metrics, listeners.metrics) }
  return {
    addresses,
    sshHostKey: 'SHA256:host',
    firstStart: { userId: 'usr_1', apiKey: settings.bootstrap.apiKey?.reveal() ?? 'made', authtoken: 'made' },
    use: (next) => {
      region = next.region
    },
    stopping: () => console.log('control stopping'),
    draining: () => {
      isDraining = true
    },
    pause: async () => {
      links.close()
      const closed = new Promise((resolve) => api.close(resolve))
      api.closeAllConnections()
      metrics.close()
      await closed
      console.log('control paused')
    },
    stop: async () => console.log('control stopped'),
  }
}

const worker: StartWorker = async (settings, { id, slot, nodeId, log, listeners, tcpPorts, controlPath }) => {
  if (settings.region === 'broken-worker') throw new Error('worker is broken')
  if (settings.region === 'crashing-worker') process.exit(4)
  const servers: Server[] = []
  let { region } = settings
  let path = controlPath
  await attach(controlPath)
  const answer = (said: string): string | Promise<string> => {
    const [command, port = ''] = said.split(' ')
    if (command === 'open') return openPort(Number(port))
    if (command === 'crash') process.exit(3)
    if (command === 'control') return path
    if (command === 'node') return nodeId
    if (command === 'region') return `${id} ${region}`
    if (command === 'settings') return JSON.stringify({ ...settings, env: process.env.POSTERN_SECRET })
    if (command === 'log') log.info({ slot }, 'asked to')
    return id
  }
  const open = async (on: ListenOn): Promise<string> => {
    const server = createServer((socket) => {
      socket.on('error', ignore)
      socket.once('data', (said) => void Promise.resolve(answer(String(said))).then((text) => socket.end(text)))
    })
    servers.push(server)
    return listen(server, on)
  }
  async function openPort(port: number): Promise<string> {
    const on = await tcpPorts.open(port)
    return on instanceof Error ? `error ${on.code}` : open(on)
  }
  const [, stored] = /^port-(\d+)$/.exec(settings.region) ?? []
  if (stored !== undefined) await openPort(Number(stored))
  const addresses = {
    agents: await open(listeners.agent),
    ssh: await open(listeners.ssh),
    https: await open(listeners.https),
    http: await open(listeners.http),
    ...(listeners.cluster && { cluster: await open(listeners.cluster) }),
  }
  return {
    addresses,
    use: (next) => {
      if (next.region === 'refused') throw new Error('no such region')
      region = next.region
    },
    drain: async () => {
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
    },
    stop: async () => console.log('worker stopped'),
    controlAt: (next) => {
      path = next
    },
  }
}

async function attach(path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => connect(path, resolve).once('error', reject).unref())
}

async function listen(server: Server, on: ListenOn): Promise<string> {
  return addressText(await listenOn(server, on, ignore))
}

function ignore(): void {}

const parent = ownParent()
if (parent) {
  const parts = {
    ...parent,
    logProcess: ignore,
    version: process.argv[3] ?? '',
    fault: (error: unknown) => String(error),
  }
  if (process.argv[2] === 'control') runControl(async () => control, parts)
  else runWorker(async () => worker, parts)
}
