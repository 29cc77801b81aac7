/** The health check of the container: ends with 0 when the server answers. */
import http from 'node:http'
import https from 'node:https'

const DEFAULT_LISTEN = '127.0.0.1:7400'
const ANSWER_MS = 4000

/** Where the server listens, as it would be called from inside: `0.0.0.0` is every address, and so this one. */
function address() {
  const [, host, port] = /^(.*):(\d+)$/.exec(process.env.POSTERN_API_LISTEN || DEFAULT_LISTEN) ?? []
  const everywhere = host === '0.0.0.0' || host === '[::]' || host === ''
  const scheme = process.env.POSTERN_API_TLS === 'on' ? 'https' : 'http'
  return `${scheme}://${everywhere ? '127.0.0.1' : host}:${port}/healthz`
}

const url = address()
// Only this machine is asked, and only whether it answers: any certificate will do.
const options = { timeout: ANSWER_MS, rejectUnauthorized: false }
const request = (url.startsWith('https:') ? https : http).get(url, options, (answer) => {
  answer.resume()
  process.exitCode = answer.statusCode === 200 ? 0 : 1
})
request.on('timeout', () => request.destroy(new Error('no answer in time')))
request.on('error', (error) => {
  console.error(error.message)
  process.exitCode = 1
})
