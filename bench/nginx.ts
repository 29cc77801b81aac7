/** Runs nginx with a temporary configuration; services of the machine are not touched. */
import { truncate, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { LOOPBACK } from './stage/ports.ts'
import type { Stage } from './stage/stage.ts'

/** The answer to a small request, in bytes. */
export const SMALL_BYTES = 1024

/** The answer to a large request, in bytes. */
export const BULK_BYTES = 256 * 1024

/** The size of an answer that is never read to its end, in bytes; the file is sparse. */
const ENDLESS_BYTES = 8 * 1024 ** 3

export const paths = { small: '/small', bulk: '/bulk', endless: '/endless' } as const

export interface NginxOptions {
  readonly nginx: string
  readonly port: number
}

/** An upstream that serves answers of three sizes. */
export async function startUpstream(stage: Stage, options: NginxOptions): Promise<void> {
  const { folder } = stage
  await writeFile(join(folder, 'bulk'), Buffer.alloc(BULK_BYTES, 'postern '))
  await writeFile(join(folder, 'endless'), '')
  await truncate(join(folder, 'endless'), ENDLESS_BYTES)
  const server = `
    listen ${LOOPBACK}:${options.port} backlog=4096;
    root ${folder};
    location ${paths.small} { return 200 "${'postern '.repeat(SMALL_BYTES / 8)}"; }
    location = ${paths.bulk} {}
    location = ${paths.endless} {}`
  await startNginx(stage, options, { server })
}

/** Runs one worker with the given `server` block, and further configuration `beside` it. */
export async function startNginx(
  stage: Stage,
  { nginx, port }: NginxOptions,
  { server, beside = '' }: { server: string; beside?: string },
): Promise<void> {
  const { folder, programs } = stage
  const { username, uid } = userInfo()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const config = `${uid === 0 ? `user ${username};\n` : ''}daemon off;
worker_processes 1;
pid ${join(folder, 'nginx.pid')};
events { worker_connections 4096; }
http {
  access_log off;
${temporary.map((name) => `  ${name}_temp_path ${join(folder, name)};`).join('\n')}
  default_type text/plain;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  keepalive_timeout 600s;
  send_timeout 600s;
  ${beside}
  server {${server}
  }
}
`
  const file = await stage.write('nginx.conf', config)
  await programs.start(nginx, ['-p', folder, '-c', file, '-e', 'stderr']).listens(port)
}
