/** Real routers of services, each serving all tables: they report which handler a path leads to. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { type AddressInfo, connect, type NetConnectOpts } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fastify } from 'fastify'
import { until } from '../support/until.ts'
import type { Owner } from '../support/upstream.ts'
import { type PathTable, pathTables } from './path-tables.ts'

export interface PathRouter {
  readonly name: string
  /** A TCP port, or the path of a socket. */
  readonly address: NetConnectOpts
}

/** The host that selects a table at a router. */
export function hostOf({ name }: PathTable): string {
  return `${name}.test`
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void

/** By host. */
async function nodeRouter(
  owner: Owner,
  name: string,
  listenerOf: (table: PathTable) => Listener | Promise<Listener>,
): Promise<PathRouter> {
  const listeners = new Map<string, Listener>()
  for (const table of pathTables) listeners.set(hostOf(table), await listenerOf(table))
  const server = createServer((request, response) => listeners.get(request.headers.host ?? '')?.(request, response))
  server.keepAliveTimeout = 0
  return { name, address: { host: '127.0.0.1', port: await listening(owner, server) } }
}

async function listening(owner: Owner, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  owner.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port // it listens on a port
}

export function fastifyRouter(owner: Owner, { isLenient = false } = {}): Promise<PathRouter> {
  // With `;` as the start of the query, as in all of Fastify 4.
  const routerOptions = { ignoreDuplicateSlashes: isLenient, useSemicolonDelimiter: isLenient }
  return nodeRouter(owner, isLenient ? 'lenient Fastify' : 'Fastify', async ({ parts }) => {
    const app = fastify({ routerOptions })
    for (const { match, isExact } of parts) {
      app.all(isExact ? match : `${match}*`, (_request, reply) => void reply.send(encodeURIComponent(match)))
    }
    await app.ready()
    return (request, response) => app.routing(request, response)
  })
}

/** The part of Express that is used here; Express has no types. */
interface Express {
  (request: IncomingMessage, response: ServerResponse): void
  set(name: string, value: boolean): void
  all(path: string, handler: (request: IncomingMessage, response: ServerResponse) => void): void
}

export function expressRouter(owner: Owner): Promise<PathRouter> {
  const express = createRequire(import.meta.url)('express') as () => Express
  return nodeRouter(owner, 'Express', ({ parts }) => {
    const app = express()
    // Letter case counts (D63): a service that ignores it needs other guards.
    app.set('case sensitive routing', true)
    // Express tries routes in the order in which they were added, and compares them with the path as sent.
    const longestFirst = [...parts].sort((a, b) => b.match.length - a.match.length)
    for (const { match, isExact } of longestFirst) {
      const path = encodeURI(match)
      app.all(isExact ? path : `${path}{*rest}`, (_request, response) => void response.end(encodeURIComponent(match)))
    }
    return app
  })
}

/** Not a router, but how services on plain Node get the path. */
export function urlRouter(owner: Owner): Promise<PathRouter> {
  return nodeRouter(owner, 'new URL()', ({ parts }) => {
    const longestFirst = [...parts].sort((a, b) => b.match.length - a.match.length)
    return (request, response) => {
      const path = pathnameOf(request.url ?? '')
      const fits = longestFirst.find(({ match, isExact }) =>
        isExact ? path === encodeURI(match) : path?.startsWith(encodeURI(match)),
      )
      response.statusCode = fits ? 200 : 404
      response.end(encodeURIComponent(fits?.match ?? ''))
    }
  })
}

function pathnameOf(url: string): string | undefined {
  try {
    return new URL(url, 'http://service.test').pathname
  } catch {
    return undefined
  }
}

/** The path of nginx; undefined if it is not installed. Servers are often outside the PATH of ordinary users. */
export function findNginx(): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders.map((folder) => join(folder, 'nginx')).find((file) => existsSync(file))
}

/** nginx with a temporary configuration. */
export async function nginxRouter(
  owner: Owner,
  nginx: string,
  { mergesSlashes }: { mergesSlashes: boolean },
): Promise<PathRouter> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-nginx-'))
  owner.after(() => rm(folder, { recursive: true, force: true }))
  const address = { path: join(folder, 'socket') }
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const servers = pathTables.map(({ name, parts }) => {
    const locations = parts.map(
      ({ match, isExact }) =>
        `location ${isExact ? '= ' : ''}"${match}" { return 200 "${encodeURIComponent(match)}"; }`,
    )
    return `server {
    listen unix:${address.path};
    server_name ${name}.test;
    merge_slashes ${mergesSlashes ? 'on' : 'off'};
    ${locations.join('\n    ')}
  }`
  })
  const config = `daemon off;
master_process off;
pid ${join(folder, 'nginx.pid')};
events { worker_connections 256; }
http {
  access_log off;
${temporary.map((name) => `  ${name}_temp_path ${join(folder, name)};`).join('\n')}
  keepalive_requests 1000000000;
  # Otherwise what it answered before it closes may be lost.
  lingering_close always;
  ${servers.join('\n  ')}
}
`
  const file = join(folder, 'nginx.conf')
  await writeFile(file, config)
  const child = spawn(nginx, ['-p', folder, '-c', file, '-e', '/dev/null'], { stdio: 'ignore' })
  const exited = once(child, 'exit')
  owner.after(async () => {
    child.kill('SIGKILL')
    await exited
  })
  await until('nginx listens', () => isListening(address))
  return { name: mergesSlashes ? 'nginx' : 'nginx without merge_slashes', address }
}

async function isListening(address: NetConnectOpts): Promise<boolean> {
  const socket = connect(address)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
