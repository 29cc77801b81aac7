# The server, and the agent: one program. docs/docker.md says how to run both.

FROM node:24-slim AS build
WORKDIR /build
# In a layer of their own, since they change less often than the sources.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run bundle -- /opt/postern

FROM node:24-slim
COPY --from=build /opt/postern /opt/postern
RUN ln -s /opt/postern/bin/postern.js /usr/local/bin/postern && install -d -o node -g node -m 0700 /data
# The API is asked from outside of the container; publish its port to the machine alone, as docs/docker.md does.
# Compiled code is kept with the data, the only place that is written to.
ENV NODE_ENV=production POSTERN_DATA_DIR=/data POSTERN_API_LISTEN=0.0.0.0:7400 XDG_CACHE_HOME=/data/.cache
# `node`, by number: only a number proves to an orchestrator that it is not root.
USER 1000:1000
WORKDIR /data
VOLUME /data
EXPOSE 2222 7400 7443 8080 8443
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["node", "/opt/postern/deploy/docker/healthy.js"]
ENTRYPOINT ["postern"]
CMD ["serve"]
