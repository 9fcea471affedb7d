# A trial in one command: Python, a Java runtime and Lakeproof with its demo.
#   docker build -t lakeproof . && docker run --rm -v "$PWD/out:/out" lakeproof demo --out /out
FROM python:3.12-slim
WORKDIR /opt/lakeproof
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir ".[all]"
WORKDIR /tables
ENTRYPOINT ["lakeproof"]
CMD ["--help"]
