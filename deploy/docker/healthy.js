/** The health check of the container: exits with 0 if the server answers. */
import http from 'node:http'
import https from 'node:https'

const DEFAULT_LISTEN = '127.0.0.1:7400'
const ANSWER_MS = 4000

/** The URL of the server from inside the container: `0.0.0.0` listens on every address, so also on 127.0.0.1. */
function address() {
  const [, host, port] = /^(.*):(\d+)$/.exec(process.env.POSTERN_API_LISTEN || DEFAULT_LISTEN) ?? []
  const everywhere = host === '0.0.0.0' || host === '[::]' || host === ''
  const scheme = process.env.POSTERN_API_TLS === 'on' ? 'https' : 'http'
  return `${scheme}://${everywhere ? '127.0.0.1' : host}:${port}/healthz`
}

const url = address()
// The request stays on this machine and only checks for an answer, so any certificate will do.
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
