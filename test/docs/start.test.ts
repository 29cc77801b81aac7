/** README and the pages for the first hour, followed from top to bottom. */
import assert from 'node:assert/strict'
import { freeTcpPort } from '../support/free-port.ts'
import { followPage } from './follow.ts'
import { service } from './service.ts'

const hello = (text: string) => assert.match(text, /^hello$/m)

followPage('README.md', {
  prepare: async () => ({ 3000: String(await freeTcpPort()) }),
  checks: {
    'curl --cacert data/ca.pem https://hello.localhost': hello,
    'export POSTERN_API_KEY': (text) => {
      assert.match(text, /"keys":\[\{"id":"ak_/)
      assert.match(text, /^ip-policies\t/m)
      assert.match(text, /`hostport` is not a known field; did you mean `hostports`\?/)
      assert.deepEqual(text.match(/^curl was answered \d+$/gm), ['curl was answered 200', 'curl was answered 400'])
    },
  },
})

followPage('docs/start.md', {
  prepare: async (reader) => {
    await reader.stays('postern serve')
    return { 3000: await service(reader), 20010: String(await freeTcpPort()), 20011: String(await freeTcpPort()) }
  },
  checks: {
    'curl http://localhost:20010/\n': hello,
    'curl http://localhost:20010/ || echo closed': (text) => assert.match(text, /^closed$/m),
    'call -X DELETE $API/ip_policies/$POLICY': (text) => assert.match(text, /ERR_STILL_REFERENCED/),
    'curl --cacert data/ca.pem https://shop': hello,
    'postern api tcp-edges list': (text) => assert.match(text, /"description": "the shop"/),
  },
})

followPage('docs/laptop.md', {
  prepare: async (reader) => ({ 3000: await service(reader), 20020: String(await freeTcpPort()) }),
  checks: {
    'curl http://app.localhost': (text) => assert.deepEqual(text.match(/^hello$/gm), ['hello', 'hello']),
    'curl http://127.0.0.1:20020/': hello,
    'curl --cacert data/ca.pem https://web': (text) => assert.deepEqual(text.match(/^hello$/gm), ['hello', 'hello']),
  },
})
