/** The reader's own service, which the pages have on port 3000: it says hello. */
import type { Reader } from './reader.ts'

const HELLO = `node -e "require('http').createServer((_, answer) => answer.end('hello\\n')).listen(0, '127.0.0.1', function () { console.log('port ' + this.address().port + '\\nup') })"`

/** Starts it; resolves with its port. */
export async function service(reader: Reader): Promise<string> {
  const [, port = ''] = /^port (\d+)$/m.exec(await reader.stays(HELLO)) ?? []
  return port
}
