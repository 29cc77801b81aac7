/** nginx in front of the plain listener, as it is by default: it speaks HTTP/1.0 then. The test needs nginx. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { httpService, Plane, plainEdgeOf } from '../testing/test-http-plane.ts'

const run = promisify(execFile)

const hasNginx = await run('nginx', ['-v']).then(
  () => true,
  () => false,
)

/** nginx with its default `proxy_pass` to the plane; returns its socket. */
async function nginxTo(t: TestContext, plane: Plane): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-nginx-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const at = join(folder, 'nginx.sock')
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  )
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr notice;
    events {}
    http {
      access_log off; ${paths.join(' ')}
      upstream a.test { server 127.0.0.1:${plane.httpPort}; }
      server { listen unix:${at}; location / { proxy_pass http://a.test; } }
    }`,
  )
  const nginx = spawn('nginx', ['-e', 'stderr', '-c', join(folder, 'nginx.conf')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = once(nginx, 'exit')
  t.after(async () => {
    nginx.kill('SIGKILL')
    await ended
  })
  // It says so once its sockets listen.
  const listens = new Promise((resolve) => {
    let log = ''
    nginx.stderr.on('data', (chunk) => {
      log += String(chunk)
      if (log.includes('event method')) resolve(true)
    })
  })
  assert.equal(await Promise.race([listens, ended]), true)
  return at
}

async function ask(socketPath: string, path: string, body = '') {
  const asking = request({ socketPath, path, method: body === '' ? 'GET' : 'POST', agent: false })
  asking.end(body)
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  return { status: response.statusCode, seen: response.headers['x-seen'], body: await text(response) }
}

test('nginx with its default proxy_pass is served', { skip: !hasNginx && 'nginx is not installed' }, async (t) => {
  const service = await httpService(t, (asked, response) => {
    response.setHeader('x-seen', `${asked.method} ${asked.url} ${asked.httpVersion} ${asked.headers.host}`)
    if (asked.url === '/length') {
      void text(asked).then((body) => response.end(`length ${body}`))
      return
    }
    response.flushHeaders()
    for (let i = 0; i < 100; i++) response.write('x'.repeat(1000))
    response.end()
  })
  const at = await nginxTo(t, await Plane.start(t, [plainEdgeOf(service)]))
  assert.deepEqual(await ask(at, '/length', 'of this'), {
    status: 200,
    seen: 'POST /length 1.1 a.test',
    body: 'length of this',
  })
  assert.deepEqual(await ask(at, '/none'), { status: 200, seen: 'GET /none 1.1 a.test', body: 'x'.repeat(100_000) })
})
