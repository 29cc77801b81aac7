/** What stands behind the tunnels: nginx for requests, iperf3 for streams. */
import { truncate, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { LOOPBACK } from './ports.ts'
import type { Program } from './programs.ts'
import type { Stage } from './stage.ts'

/** The answer to a small request, in bytes. */
export const SMALL_BYTES = 1024

/** The answer to a large request, in bytes. */
export const BULK_BYTES = 256 * 1024

/** An answer that nobody reads to its end, in bytes; the file has holes only. */
const ENDLESS_BYTES = 8 * 1024 ** 3

export const paths = { small: '/small', bulk: '/bulk', endless: '/endless' } as const

/** Serves answers of three sizes. */
export async function startNginx(stage: Stage, { nginx, port }: { nginx: string; port: number }): Promise<void> {
  const { folder, programs } = stage
  await writeFile(join(folder, 'bulk'), Buffer.alloc(BULK_BYTES, 'postern '))
  await writeFile(join(folder, 'endless'), '')
  await truncate(join(folder, 'endless'), ENDLESS_BYTES)
  const config = await stage.write('nginx.conf', nginxConfig(folder, port))
  await programs.start(nginx, ['-p', folder, '-c', config, '-e', 'stderr']).listens(port)
}

/** An iperf3 server for one test: one that saw a broken test refuses the next, so each gets its own. */
export async function startIperf(stage: Stage, { iperf3, port }: { iperf3: string; port: number }): Promise<Program> {
  const program = stage.programs.start(iperf3, ['-s', '-1', '-B', LOOPBACK, '-p', String(port), '--forceflush'])
  await program.says(/Server listening/)
  return program
}

function nginxConfig(folder: string, port: number): string {
  const { username, uid } = userInfo()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `${uid === 0 ? `user ${username};\n` : ''}daemon off;
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
  server {
    listen ${LOOPBACK}:${port} backlog=4096;
    root ${folder};
    location = ${paths.small} { return 200 "${'postern '.repeat(SMALL_BYTES / 8)}"; }
    location = ${paths.bulk} {}
    location = ${paths.endless} {}
  }
}
`
}
